import Cryptography
import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The sandbox, asked by a service` {
    private let key: PrivateKey
    private let visitor: Visitor

    init() throws {
        key = try PrivateKey.generate(.ed25519)
        var options = SandboxOptions()
        options.clients.append(SandboxClient(id: "robot", secret: Secret("hush")))
        options.clients.append(SandboxClient(id: "signs", keys: [key.publicKey]))
        visitor = Visitor(options)
    }

    private func token(_ form: [String: String]) async -> Answer {
        await visitor.post("/token", form.map { ($0.key, $0.value) })
    }

    private func assertion(_ more: [JSONObject.Member] = []) async throws -> String {
        let body = JSON.object(JSONObject([.init("subject", "build")] + more))
        let answer = await visitor.send("POST", "/sandbox/assertion", body: body.serialized())
        return try #require(answer.json["assertion"]?.string, "\(answer.text)")
    }

    @Test func `gives a client that proves itself a token, and no refresh token`() async {
        let form = ["grant_type": "client_credentials", "client_id": "robot", "client_secret": "hush", "scope": "a b"]
        let answer = await token(form)
        #expect(answer.status == 200 && answer.json["access_token"]?.string?.hasPrefix("at-") == true)
        #expect(answer.json["scope"]?.string == "a b" && answer.json["refresh_token"] == nil)
        #expect(answer.json["token_type"]?.string == "Bearer" && answer.json["expires_in"]?.integer == 3_600)
        #expect(await token(form.merging(["client_secret": "x"]) { $1 }).error == "invalid_client")
    }

    @Test func `gives a public client none`() async {
        let answer = await token(["grant_type": "client_credentials", "client_id": "ringback-demo"])
        #expect(answer.error == "unauthorized_client")
    }

    @Test func `trades an assertion of its own making, for whoever brings it`() async throws {
        let grant = ["grant_type": Issuer.jwtBearer]
        let good = try await assertion()
        #expect(await token(grant.merging(["assertion": good]) { $1 }).status == 200)
        #expect(await token(grant).error == "invalid_request")
        for wrong in [good + "A", "a.b.c", try await assertion([.init("audience", "https://elsewhere.example")])] {
            #expect(await token(grant.merging(["assertion": wrong]) { $1 }).error == "invalid_grant")
        }
        visitor.clock.advance(by: 301)
        #expect(await token(grant.merging(["assertion": good]) { $1 }).error == "invalid_grant")
    }

    @Test func `trades an assertion that a client has issued itself, once, and only if it is right`() async throws {
        let now = visitor.clock.now
        func form(_ change: (inout JSONObject) -> Void = { _ in }) throws -> [String: String] {
            var claims: JSONObject = [
                "iss": "signs", "sub": "ada", "aud": "\(origin)/token", "exp": now + 60,
                "jti": RandomToken.identifier(bits: 128),
            ]
            change(&claims)
            let text = try JSONWebToken.signed(["alg": "EdDSA"] as JSONObject, claims) {
                try key.sign(message: $0, algorithm: .edDSA)
            }
            return ["grant_type": Issuer.jwtBearer, "assertion": text]
        }
        let good = try form()
        #expect(await token(good).status == 200)
        #expect(await token(good).error == "invalid_grant")
        #expect(await token(try form { $0["aud"] = .string(origin) }).status == 200)
        let changes: [(inout JSONObject) -> Void] = [
            { $0["iss"] = "robot" }, { $0["sub"] = nil }, { $0["aud"] = "https://elsewhere.example" },
            { $0["exp"] = .integer(now - 60) }, { $0["exp"] = .integer(now + 3_600) }, { $0["jti"] = nil },
        ]
        for change in changes { #expect(await token(try form(change)).error == "invalid_grant") }
        let text = try form()["assertion"] ?? ""
        #expect(await token(good.merging(["assertion": text + "A"]) { $1 }).error == "invalid_grant")
        #expect(await token(good.merging(["grant_type": Issuer.samlBearer]) { $1 }).error == "invalid_grant")
    }

    @Test func `trades a SAML assertion of its own making, as base64url, for whoever brings it`() async throws {
        let grant = ["grant_type": Issuer.samlBearer]
        let format = JSONObject.Member("format", "saml2")
        let xml = try await assertion([format])
        #expect(xml.hasPrefix("<saml:Assertion ") && xml.contains("<saml:NameID>build</saml:NameID>"))
        func coded(_ text: String) -> [String: String] {
            grant.merging(["assertion": Base64URL.encode(Array(text.utf8))]) { $1 }
        }
        #expect(await token(coded(xml)).status == 200)
        #expect(await token(grant).error == "invalid_request")
        let elsewhere = try await assertion([format, .init("audience", "https://elsewhere.example")])
        for wrong in [elsewhere, xml.replacing("build", with: "admin"), "<a/>", try await assertion()] {
            #expect(await token(coded(wrong)).error == "invalid_grant")
        }
        #expect(await token(grant.merging(["assertion": xml]) { $1 }).error == "invalid_grant")
        #expect(
            await token(coded(xml).merging(["grant_type": Issuer.jwtBearer]) { $1 }).error == "invalid_grant")
        visitor.clock.advance(by: 301)
        #expect(await token(coded(xml)).error == "invalid_grant")
    }

    @Test func `exchanges assertions and its own access tokens, and says what it gave`() async throws {
        let prefix = "urn:ietf:params:oauth:token-type:"
        let robot = ["grant_type": "client_credentials", "client_id": "robot", "client_secret": "hush"]
        let own = try #require(await token(robot).json["access_token"]?.string)
        for (type, subject) in [("jwt", try await assertion()), ("access_token", own)] {
            let form = [
                "grant_type": Issuer.tokenExchange, "subject_token": subject,
                "subject_token_type": prefix + type,
            ]
            let answer = await token(form)
            #expect(answer.json["issued_token_type"]?.string == prefix + "access_token", "\(answer.text)")
            let wrong = form.merging(["requested_token_type": prefix + "refresh_token"]) { $1 }
            #expect(await token(wrong).error == "invalid_request")
        }
        let strange = ["grant_type": Issuer.tokenExchange, "subject_token": own, "subject_token_type": "urn:x"]
        #expect(await token(strange).error == "invalid_request")
    }

    /// A sign-in, and the exchange of what proves it for an assertion for another issuer of the site.
    private func exchanged(_ visitor: Visitor, _ changes: [String: String] = [:]) async throws -> Answer {
        let tokens = try await visitor.signIn()
        let prefix = "urn:ietf:params:oauth:token-type:"
        let form = [
            "grant_type": Issuer.tokenExchange, "subject_token": try tokens.text("id_token"),
            "subject_token_type": "\(prefix)id_token", "requested_token_type": "\(prefix)id-jag",
            "audience": "\(origin)/tenant-a", "resource": "https://mcp.example/mcp", "scope": "a",
            "client_id": "ringback-demo",
        ].merging(changes) { $1 }
        return await visitor.post("/token", form.map { ($0.key, $0.value) })
    }

    @Test func `exchanges a sign-in for an assertion that another issuer takes`() async throws {
        let visitor = Visitor.quick()
        let answer = try await exchanged(visitor)
        #expect(answer.json["issued_token_type"] == "urn:ietf:params:oauth:token-type:id-jag", "\(answer.text)")
        #expect(answer.json["token_type"] == "N_A" && answer.json["refresh_token"] == nil)
        let assertion = try answer.json.text("access_token")
        var other = visitor
        other.prefix = "/tenant-a"
        let grant = [
            ("grant_type", Issuer.jwtBearer), ("assertion", assertion), ("client_id", "robot"),
            ("client_secret", "hush"),
        ]
        await other.control(["clients": [["id": "robot", "secret": "hush"]]])
        #expect(await other.post("/token", grant).error == "invalid_grant")
        await other.control(["assertion_issuers": [origin: await visitor.get("/jwks").json]])
        let tokens = await other.post("/token", grant)
        #expect(tokens.json["access_token"]?.string?.hasPrefix("at-") == true, "\(tokens.text)")
        // It proves the user, not the client, and is for this issuer alone.
        #expect(await other.post("/token", Array(grant.prefix(2))).error == "invalid_client")
        #expect(await visitor.post("/token", Array(grant.prefix(2))).error == "invalid_grant")
        visitor.clock.advance(by: 301)
        #expect(await other.post("/token", grant).error == "invalid_grant")
    }

    @Test func `gives no assertion for a sign-in that is over or of another client, or for no audience`() async throws {
        let visitor = Visitor.quick()
        #expect(try await exchanged(visitor, ["subject_token": "x"]).error == "invalid_grant")
        #expect(try await exchanged(visitor, ["audience": ""]).error == "invalid_request")
        #expect(try await exchanged(visitor, ["subject_token_type": "urn:x"]).error == "invalid_request")
        let tokens = try await visitor.signIn()
        let held = [
            "subject_token": try tokens.text("refresh_token"),
            "subject_token_type": "urn:ietf:params:oauth:token-type:refresh_token",
        ]
        #expect(try await exchanged(visitor, held).status == 200)
        await visitor.control(["clients": [["id": "other"]]])
        #expect(try await exchanged(visitor, held.merging(["client_id": "other"]) { $1 }).error == "invalid_grant")
        _ = await visitor.refresh(try tokens.text("refresh_token"))
        #expect(try await exchanged(visitor, held).error == "invalid_grant")
        let idToken = ["subject_token": try tokens.text("id_token")]
        #expect(try await exchanged(visitor, idToken).status == 200)
        await visitor.control(["revoke_all": true])
        #expect(try await exchanged(visitor, idToken).error == "invalid_grant")
    }

    @Test func `makes no assertion about nobody`() async {
        for body in [
            "", "[]", "{}", #"{"subject":""}"#, #"{"subject":"a","other":1}"#, #"{"subject":"a","format":"x"}"#,
        ] {
            #expect(await visitor.send("POST", "/sandbox/assertion", body: Array(body.utf8)).status == 400)
        }
        #expect(await visitor.get("/sandbox/assertion").status == 405)
    }

    @Test func `says in its metadata what it gives`() async {
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        let grants = metadata["grant_types_supported"]?.array ?? []
        for grant in ["client_credentials", Issuer.jwtBearer, Issuer.samlBearer, Issuer.tokenExchange] {
            #expect(grants.contains(.string(grant)))
        }
    }
}
