import Cryptography
import OAuth
import RingbackBase
import Testing

private let now = 1_800_000_000
private let ordinary: JSON = [
    "iss": "https://id.example", "aud": "ringback", "sub": "ann", "email": "ann@example.org",
]

private func expectations(subject: String? = "ann") -> IDTokenExpectations {
    var expected = IDTokenExpectations(
        issuer: "https://id.example", clientID: "ringback", now: now, allowedAlgorithms: [.es256])
    expected.subject = subject
    return expected
}

/// Nil if the changed answer is believed, else what is said about it.
private func fault(_ changes: [String: JSON?] = [:], header: [String: JSON?] = [:]) throws -> String? {
    let mint = try TokenMint(.es256)
    let claims = changes.reduce(ordinary) { $0.setting($1.key, $1.value) }
    let token = try mint.token(claims, header: header.reduce(mint.header) { $0.setting($1.key, $1.value) })
    do {
        _ = try Userinfo(verifying: token, keys: mint.keys(), expecting: expectations())
        return nil
    } catch OAuthError.invalid(.userinfo, let reason) {
        return reason
    }
}

@Suite struct `Signed userinfo` {
    @Test func `OIDF-24: a signed answer is believed and read`() throws {
        let mint = try TokenMint(.es256)
        let token = try mint.token(ordinary)
        let response = HTTPResponse(
            status: 200, fields: HTTPFields([("Content-Type", "application/jwt")]), body: token)
        let body = try #require(Userinfo.signedToken(in: response))
        let userinfo = try Userinfo(verifying: body, keys: mint.keys(), expecting: expectations())
        #expect(userinfo.subject == "ann")
        #expect(userinfo.claims["email"] == "ann@example.org")
    }

    @Test func `only a successful answer of its type is a signed one`() {
        func answer(_ status: Int, _ type: String) -> HTTPResponse {
            HTTPResponse(status: status, fields: HTTPFields([("Content-Type", type)]), body: Secret("h.p.s"))
        }
        #expect(Userinfo.signedToken(in: answer(200, "application/jwt; charset=utf-8")) != nil)
        #expect(Userinfo.signedToken(in: answer(401, "application/jwt")) == nil)
        #expect(Userinfo.signedToken(in: answer(200, "application/json")) == nil)
        #expect(Userinfo.signedToken(in: HTTPResponse(status: 200, body: Secret("h.p.s"))) == nil)
    }

    @Test(
        arguments: [
            [:], ["aud": ["other", "ringback"]], ["exp": .integer(now - 119)], ["iat": .integer(now + 120)],
            ["nbf": .null], ["typ": "JWT"],
        ] as [[String: JSON?]])
    func `what it need not say it need not say`(changes: [String: JSON?]) throws {
        #expect(try fault(changes) == nil)
    }

    @Test(
        arguments: [
            ("iss", ["iss": nil]), ("iss", ["iss": "https://id.example/"]), ("iss", ["iss": 7]), ("aud", ["aud": nil]),
            ("aud", ["aud": "other"]), ("aud", ["aud": []]), ("exp", ["exp": .integer(now - 120)]),
            ("exp", ["exp": "x"]),
            ("iat", ["iat": .integer(now + 121)]), ("nbf", ["nbf": .integer(now + 121)]),
        ] as [(String, [String: JSON?])])
    func `OpenID Connect Core 5_3_2: issuer, audience and times are checked`(
        claim: String, changes: [String: JSON?]
    ) throws {
        #expect(try fault(changes)?.hasPrefix("\(claim): ") ?? false)
    }

    @Test(arguments: [["sub": "eve"], ["sub": nil], ["sub": 7], ["sub": ""], ["sub": "ann\n"]] as [[String: JSON?]])
    func `OIDF-11: another subject or none is refused`(changes: [String: JSON?]) throws {
        #expect(try fault(changes)?.contains("sub") ?? false)
    }

    @Test(
        arguments: [
            ("alg", ["alg": "none"]), ("alg", ["alg": "RS256"]), ("kid", ["kid": "k2"]), ("typ", ["typ": "at+jwt"]),
            ("crit", ["crit": ["x"]]),
        ] as [(String, [String: JSON?])])
    func `a header that does not fit is refused`(part: String, header: [String: JSON?]) throws {
        #expect(try fault(header: header)?.hasPrefix("\(part): ") ?? false)
    }

    @Test func `another's signature, and what is no token, is refused`() throws {
        let keys = try TokenMint(.es256).keys()
        for token in [try TokenMint(.es256).token(ordinary), Secret(ordinary.text), Secret(""), Secret("a.b.c.d.e")] {
            #expect(throws: OAuthError.self) {
                try Userinfo(verifying: token, keys: keys, expecting: expectations())
            }
        }
    }

    @Test func `without an ID token any one subject is taken`() throws {
        let mint = try TokenMint(.es256)
        let userinfo = try Userinfo(
            verifying: mint.token(ordinary), keys: mint.keys(), expecting: expectations(subject: nil))
        #expect(userinfo.subject == "ann")
    }
}
