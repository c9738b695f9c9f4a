import RingbackBase
import Testing

@testable import SupabaseAuth

private func object(_ text: String) throws -> JSONObject {
    try #require(try JSON(parsing: Array(text.utf8)).object)
}

private func user(_ text: String) throws -> SupabaseUser { try #require(SupabaseUser(reading: try object(text))) }

private func identity(_ id: String, _ provider: String = "google", createdAt: String = "2026-08-22T06:40:00Z") -> String
{
    """
    {"identity_id":"\(id)","id":"s-\(id)","provider":"\(provider)","created_at":"\(createdAt)",\
    "identity_data":{"email":"m@b.c"}}
    """
}

@Suite struct `A user of a project` {
    @Test func `is read whole`() throws {
        let user = try user(
            """
            {"id":"u","role":"authenticated","email":"m@b.c","phone":"491512345678","new_phone":"4917",\
            "email_confirmed_at":"2026-03-02T08:14:55Z","is_anonymous":false,"app_metadata":{"provider":"google"},\
            "user_metadata":{"full_name":"Mira N"},"identities":[\(identity("i1"))],"factors":[{"id":"f1",\
            "factor_type":"totp","status":"verified","friendly_name":"app","phone":"","last_challenged_at":null,\
            "last_webauthn_challenge_data":{"x":1}},{"id":"f2","factor_type":"phone","status":"unverified",\
            "phone":"4917"}]}
            """)
        #expect(user.email == "m@b.c")
        #expect(user.phone == "+491512345678" && user.newPhone == "+4917")
        #expect(user.name == "Mira N")
        #expect(user.identities?.map(\.identityID) == ["i1"])
        #expect(user.identities?.first?.email == "m@b.c")
        #expect(user.factors.map(\.isVerified) == [true, false])
        #expect(user.factors.map(\.phone) == [nil, "+4917"])
        #expect(user.nextAssurance == .aal2)
        #expect(!user.isStandIn)
    }

    @Test func `needs nothing but an id`() throws {
        let user = try user(#"{"id":"u"}"#)
        #expect(user.email == nil && user.phone == nil && user.name == nil && user.identities == nil)
        #expect(user.nextAssurance == .aal1 && user.role.isEmpty && !user.isStandIn)
        #expect(user.json == JSONObject(["id": "u"]))
    }

    @Test(
        arguments: [
            #"{"id":"u","email":1,"phone":null,"identities":{},"factors":"x","user_metadata":[],"is_anonymous":"yes"}"#,
            #"{"id":"u","identities":[1,{"id":"x"},null],"factors":[{},7]}"#,
        ])
    func `is not lost for an odd member`(text: String) throws { #expect(try user(text).id == "u") }

    @Test func `has no more identities than the records can tell of`() throws {
        let many = (0..<1_000).map { identity("i\($0)") }.joined(separator: ",")
        let crowd = try user("{\"id\":\"u\",\"identities\":[\(many)]}")
        #expect(crowd.identities?.count == SupabaseUser.mostIdentities)
        let change = IdentityChange(from: [KnownIdentity(identityID: "i0", provider: "google")], to: crowd)
        #expect(change.linked.count == SupabaseUser.mostIdentities - 1 && change.unlinked.isEmpty)
        #expect(crowd.knownIdentities?.count == SupabaseUser.mostIdentities)
    }

    @Test(arguments: ["{}", #"{"id":""}"#, #"{"id":1}"#, #"{"id":"a b"}"#, #"{"id":"a\u0000"}"#])
    func `without an id is none`(text: String) throws { #expect(SupabaseUser(reading: try object(text)) == nil) }

    @Test func `is shown without what lets somebody sign in, and read again is the same`() throws {
        let user = try user(
            """
            {"id":"u","email":"","phone":"4917","role":"","confirmation_token":"S1","recovery_token":"S2",\
            "encrypted_password":"S3","action_link":"S4","email_otp":"S5","hashed_token":"S6","new_thing":{"a":1},\
            "banned_until":null,"factors":[{"id":"f","factor_type":"webauthn","status":"verified","secret":"S7",\
            "last_webauthn_challenge_data":{"x":"S8"}}],"identities":[\(identity("i"))]}
            """)
        let text = JSON.object(user.json).text
        for number in 1...8 { #expect(!text.contains("S\(number)")) }
        #expect(user.json["phone"] == "+4917")
        #expect(user.json["new_thing"] == ["a": 1])
        #expect(user.json["email"] == nil && user.json["role"] == nil && user.json["banned_until"] == nil)
        #expect(user.json["factors"]?.array?.count == 1)
        let again = try #require(SupabaseUser(reading: user.json))
        #expect(again.json == user.json)
        #expect(again.phone == "+4917" && again.nextAssurance == .aal2)
    }

    @Test(
        arguments: [
            (#"{"full_name":"A","name":"B"}"#, "A"), (#"{"name":"B"}"#, "B"), (#"{"user_name":"mira"}"#, "mira"),
            (#"{"given_name":"M","family_name":"N"}"#, "M N"), (#"{"family_name":"N"}"#, "N"), ("{}", nil),
            (#"{"full_name":""}"#, nil), (#"{"full_name":1}"#, nil),
        ] as [(String, String?)])
    func `is called what a provider or the person said`(metadata: String, name: String?) throws {
        #expect(try user(#"{"id":"u","user_metadata":\#(metadata)}"#).name == name)
    }

    @Test(arguments: [("[]", true), ("null", false), ("[\(identity("i"))]", false)])
    func `without identities is a stranger in place of one that exists`(identities: String, isStandIn: Bool) throws {
        #expect(try user(#"{"id":"u","identities":\#(identities)}"#).isStandIn == isStandIn)
    }
}

@Suite struct `Identities that come and go` {
    @Test func `a link and an unlink are seen between two documents`() throws {
        let before = try user(#"{"id":"u","identities":[\#(identity("a")),\#(identity("b"))]}"#)
        let after = try user(#"{"id":"u","identities":[\#(identity("b")),\#(identity("c", "apple"))]}"#)
        let change = IdentityChange(from: before, to: after)
        #expect(change.linked.map(\.provider) == ["apple"])
        #expect(change.unlinked.map(\.identityID) == ["a"])
        #expect(IdentityChange(from: after, to: after).isEmpty)
    }

    @Test func `a document that does not tell proves nothing, nor does another user's`() throws {
        let told = try user(#"{"id":"u","identities":[\#(identity("a"))]}"#)
        #expect(IdentityChange(from: told, to: try user(#"{"id":"u","identities":null}"#)).isEmpty)
        #expect(IdentityChange(from: try user(#"{"id":"u"}"#), to: told).isEmpty)
        #expect(IdentityChange(from: try user(#"{"id":"v","identities":[]}"#), to: told).isEmpty)
    }

    @Test func `what is remembered is enough to see them`() throws {
        let now = try user(#"{"id":"u","identities":[\#(identity("b")),\#(identity("c", "apple"))]}"#)
        let change = IdentityChange(from: [KnownIdentity(identityID: "a", provider: "github")], to: now)
        #expect(change.linked.map(\.identityID) == ["b", "c"])
        #expect(change.unlinked == [KnownIdentity(identityID: "a", provider: "github")])
        #expect(IdentityChange(from: now.knownIdentities ?? [], to: now).isEmpty)
    }

    @Test func `one made later than its user was linked, and a sign-up is no link`() throws {
        func linked(_ made: String, _ provider: String = "google") throws -> [String] {
            let first = identity("first", "github", createdAt: "2026-03-02T08:14:55.1Z")
            let other = identity("other", provider, createdAt: made)
            let user = try user(#"{"id":"u","created_at":"2026-03-02T08:14:55.9Z","identities":[\#(first),\#(other)]}"#)
            return IdentityChange(onFirstSightOf: user).linked.map(\.identityID)
        }
        #expect(try linked("2026-08-22T06:40:03.018294975Z") == ["other"])
        #expect(try linked("2026-03-02T08:15:06Z") == ["other"])
        // In one breath, be it in either order.
        #expect(try linked("2026-03-02T08:15:05Z") == [])
        #expect(try linked("2026-03-02T08:14:54Z") == [])
        // The server's own work for users of old, and what nobody knows.
        #expect(try linked("2026-08-22T06:40:03Z", "email") == [])
        #expect(try linked("2026-08-22T06:40:03Z", "phone") == [])
        #expect(try linked("some day") == [])
        #expect(IdentityChange(onFirstSightOf: try user(#"{"id":"u"}"#)).isEmpty)
    }
}

@Suite struct `The name that Apple tells once` {
    @Test func `is written to a user without one`() throws {
        let posted = try object(#"{"name":{"firstName":" Mira ","lastName":"N"},"email":"m@b.c"}"#)
        let name = try #require(AppleName(reading: posted))
        #expect(
            name.data(for: try user(#"{"id":"u"}"#))
                == JSONObject(["full_name": "Mira N", "given_name": "Mira", "family_name": "N"]))
        #expect(name.data(for: try user(#"{"id":"u","user_metadata":{"full_name":""}}"#)) != nil)
    }

    @Test func `never replaces one`() throws {
        let name = try #require(AppleName(given: "Mira", family: nil))
        #expect(name.data(for: try user(#"{"id":"u","user_metadata":{"name":"M"}}"#)) == nil)
        #expect(name.data(for: try user(#"{"id":"u","user_metadata":{"given_name":"M"}}"#)) == nil)
    }

    @Test func `may have one part, and nothing is none`() throws {
        #expect(try AppleName(given: "", family: "N")?.data(for: user(#"{"id":"u"}"#))?["full_name"] == "N")
        #expect(AppleName(given: " ", family: nil) == nil)
        #expect(AppleName(reading: JSONObject(["name": 1])) == nil)
    }
}
