import Cryptography
import OAuth
import RingbackBase
import Testing

private let now = 1_800_000_000

private let ordinary: JSON = [
    "iss": "https://id.example/realms/main", "sub": "ann", "aud": "ringback", "exp": .integer(now + 300),
    "iat": .integer(now), "nonce": "n-0S6_WzA2Mj", "auth_time": .integer(now - 20), "email": "ann@example.org",
]

private func expectations(
    nonce: String? = "n-0S6_WzA2Mj", accessToken: String? = nil, code: String? = nil,
    previous: IDTokenExpectations.Previous? = nil
) -> IDTokenExpectations {
    IDTokenExpectations(
        issuer: "https://id.example/realms/main", clientID: "ringback", nonce: nonce.map { Secret($0) }, now: now,
        accessToken: accessToken.map { Secret($0) }, code: code.map { Secret($0) }, previous: previous,
        allowedAlgorithms: [.rs256, .ps256, .es256, .edDSA])
}

/// Signs the changed claims; what is said of them: nil if they are believed, or the claim at fault.
private func verdict(
    _ changes: [String: JSON?] = [:], header: [String: JSON?] = [:], algorithm: SignatureAlgorithm = .es256,
    expecting expected: IDTokenExpectations = expectations()
) throws -> String? {
    let mint = try TokenMint(algorithm)
    let claims = changes.reduce(ordinary) { $0.setting($1.key, $1.value) }
    let token = try mint.token(claims, header: header.reduce(mint.header) { $0.setting($1.key, $1.value) })
    do {
        _ = try IDToken.verify(token, keys: mint.keys(), expecting: expected)
        return nil
    } catch OAuthError.invalidIDToken(let claim, _) {
        return claim
    } catch OAuthError.otherSubject {
        return "sub"
    }
}

@Suite struct `ID token` {
    @Test(arguments: [SignatureAlgorithm.rs256, .ps256, .es256, .edDSA])
    func `an ordinary token is believed and read`(algorithm: SignatureAlgorithm) throws {
        let mint = try TokenMint(algorithm)
        let token = try IDToken.verify(mint.token(ordinary), keys: mint.keys(), expecting: expectations())
        #expect(token.issuer == "https://id.example/realms/main")
        #expect(token.subject == "ann")
        #expect(token.audience == ["ringback"])
        #expect(token.expiresAt == now + 300)
        #expect(token.issuedAt == now)
        #expect(token.authenticationTime == now - 20)
        #expect(token.authorizedParty == nil)
        #expect(token.claims["email"] == "ann@example.org")
    }

    @Test(
        arguments: [
            ("iss", ["iss": "https://id.example/realms/main1"]), ("iss", ["iss": "https://id.example/realms/main/"]),
            ("iss", ["iss": "https://ID.example/realms/main"]), ("iss", ["iss": nil]), ("iss", ["iss": .null]),
            ("iss", ["iss": ""]), ("iss", ["iss": ["https://id.example/realms/main"]]),
            ("sub", ["sub": nil]), ("sub", ["sub": ""]), ("sub", ["sub": .null]), ("sub", ["sub": 7]),
            ("sub", ["sub": .string(String(repeating: "s", count: 256))]),
            ("aud", ["aud": nil]), ("aud", ["aud": .null]), ("aud", ["aud": ""]), ("aud", ["aud": []]),
            ("aud", ["aud": "ringback1"]), ("aud", ["aud": "Ringback"]), ("aud", ["aud": ["other"]]),
            ("aud", ["aud": [["ringback"]]]), ("aud", ["aud": ["ringback", 1], "azp": "ringback"]),
            ("aud", ["aud": ["ringback", ""], "azp": "ringback"]), ("aud", ["aud": ["client": "ringback"]]),
            ("aud", ["aud": ["other"], "azp": "ringback"]), ("aud", ["aud": "ringback other"]),
            ("azp", ["aud": ["ringback", "ringback1"]]), ("azp", ["aud": ["ringback", "other"], "azp": .null]),
            ("azp", ["aud": ["ringback", "other"], "azp": "other"]), ("azp", ["azp": "other"]), ("azp", ["azp": ""]),
            ("azp", ["azp": ["ringback"]]),
        ] as [(String, [String: JSON?])])
    func `PR-24: issuer, subject and audience must be ours`(claim: String, changes: [String: JSON?]) throws {
        #expect(try verdict(changes) == claim)
    }

    @Test(
        arguments: [
            ["aud": ["ringback"]], ["aud": ["ringback", "ringback"]], ["azp": "ringback"], ["azp": .null],
            ["aud": ["other", "ringback"], "azp": "ringback"], ["sub": .string(String(repeating: "s", count: 255))],
            ["sub": "åse|x 1"], ["auth_time": 0], ["auth_time": .double(1_799_999_980.5)], ["auth_time": .null],
            ["auth_time": nil], ["exp": .double(1_800_000_300.75)], ["exp": .double(1.8000003e9)],
            ["iat": .double(1.8e9)],
            ["exp": .integer(now - 119)], ["iat": .integer(now + 120)], ["nbf": .integer(now + 120)], ["nbf": 0],
            ["nbf": .null], ["exp": 253_402_300_799], ["iat": 0], ["at_hash": .null], ["at_hash": "unchecked"],
            ["acr": 1],
        ] as [[String: JSON?]])
    func `what providers send and standards allow is believed`(changes: [String: JSON?]) throws {
        #expect(try verdict(changes) == nil)
    }

    @Test(
        arguments: [
            ("exp", ["exp": nil]), ("exp", ["exp": .null]), ("exp", ["exp": 0]), ("exp", ["exp": -1]),
            ("exp", ["exp": "1800000300"]), ("exp", ["exp": .integer(now - 120)]),
            ("exp", ["exp": .integer(now - 360)]),
            ("exp", ["exp": .double(9.223372036854775807e18)]), ("exp", ["exp": .integer(.max)]),
            ("exp", ["exp": .integer(.min)]), ("exp", ["exp": .double(1e300)]), ("exp", ["exp": .double(-1e300)]),
            ("exp", ["exp": .integer((now + 300) * 1000)]), ("exp", ["exp": true]), ("exp", ["exp": [1_800_000_300]]),
            ("iat", ["iat": nil]), ("iat", ["iat": "1800000000"]), ("iat", ["iat": .integer(now + 121)]),
            ("iat", ["iat": .integer(now + 3600)]), ("iat", ["iat": .integer(.max)]), ("iat", ["iat": .double(1e19)]),
            ("nbf", ["nbf": .integer(now + 121)]), ("nbf", ["nbf": "0"]), ("nbf", ["nbf": .integer(.max)]),
            ("auth_time", ["auth_time": "1800000000"]), ("auth_time", ["auth_time": -1]),
            ("auth_time", ["auth_time": .double(1e300)]),
        ] as [(String, [String: JSON?])])
    func `PR-15: times must be times and hold now`(claim: String, changes: [String: JSON?]) throws {
        #expect(try verdict(changes) == claim)
    }

    @Test(arguments: ["1e999", "-1e999", "9223372036854775808", "1e308", "-0", "1800000300e400"])
    func `PR-09: no written number traps`(number: String) throws {
        let mint = try TokenMint(.es256)
        for claim in ["exp", "iat", "nbf", "auth_time"] {
            let text = ordinary.setting(claim, "NUMBER").text.replacing("\"NUMBER\"", with: number)
            let token = try mint.token(headerText: mint.header.serialized(), payload: Array(text.utf8))
            _ = try? IDToken.verify(token, keys: mint.keys(), expecting: expectations())
        }
        let text = ordinary.setting("exp", "NUMBER").text.replacing("\"NUMBER\"", with: number)
        let token = try mint.token(headerText: mint.header.serialized(), payload: Array(text.utf8))
        #expect(throws: OAuthError.self) {
            try IDToken.verify(token, keys: mint.keys(), expecting: expectations())
        }
    }

    @Test func `PR-24: the nonce that was sent must come back`() throws {
        for nonce: JSON? in [nil, .null, "", "n-0S6_WzA2Mj1", "N-0S6_WzA2Mj", 7, ["n-0S6_WzA2Mj"]] {
            #expect(try verdict(["nonce": nonce]) == "nonce")
        }
        // None was sent: nothing must come.
        #expect(try verdict(["nonce": nil], expecting: expectations(nonce: nil)) == nil)
        #expect(try verdict([:], expecting: expectations(nonce: nil)) == nil)
        #expect(try verdict([:], expecting: expectations(nonce: "")) == "nonce")
    }

    @Test(arguments: [
        (SignatureAlgorithm.rs256, "77QmUPtjPfzWtF2AnpK9RQ", "LDktKdoQak3Pk0cnXxCltA"),
        (.es256, "77QmUPtjPfzWtF2AnpK9RQ", "LDktKdoQak3Pk0cnXxCltA"),
    ])
    func `OIDF-33: the half hashes of OpenID Connect Core A_4`(
        algorithm: SignatureAlgorithm, accessHash: String, codeHash: String
    ) throws {
        let expected = expectations(
            accessToken: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y",
            code: "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk")
        let good: [String: JSON?] = ["at_hash": .string(accessHash), "c_hash": .string(codeHash)]
        #expect(try verdict(good, algorithm: algorithm, expecting: expected) == nil)
        #expect(try verdict([:], algorithm: algorithm, expecting: expected) == nil)
        for wrong: JSON in [.string(codeHash), "", .string(accessHash + "="), 7, .string(accessHash.lowercased())] {
            #expect(try verdict(["at_hash": wrong], algorithm: algorithm, expecting: expected) == "at_hash")
        }
        #expect(try verdict(["c_hash": .string(accessHash)], algorithm: algorithm, expecting: expected) == "c_hash")
    }

    @Test func `OIDF-33: half hashes use the digest of the signature, SHA-512 for Ed25519`() throws {
        let hash = Base64URL.encode(Digest.sha512("token").prefix(32))
        let expected = expectations(accessToken: "token")
        #expect(try verdict(["at_hash": .string(hash)], algorithm: .edDSA, expecting: expected) == nil)
        #expect(try verdict(["at_hash": .string(hash)], algorithm: .es256, expecting: expected) == "at_hash")
    }

    @Test(
        arguments: [
            ("typ", ["typ": "at+jwt"]), ("typ", ["typ": "application/at+jwt"]), ("typ", ["typ": "AT+JWT"]),
            ("typ", ["typ": "logout+jwt"]), ("typ", ["typ": "dpop+jwt"]), ("typ", ["typ": 1]),
            ("alg", ["alg": "none"]), ("alg", ["alg": "HS256"]), ("alg", ["alg": nil]), ("alg", ["alg": "ES384"]),
            ("kid", ["kid": "k2"]),
            ("kid", ["kid": "../k1"]), ("crit", ["crit": ["b64"]]), ("kid", ["alg": "RS256"]),
            ("kid", ["alg": "EdDSA"]),
        ] as [(String, [String: JSON?])])
    func `a header that does not fit is refused`(part: String, header: [String: JSON?]) throws {
        #expect(try verdict([:], header: header) == part)
    }

    @Test(
        arguments: [["typ": nil], ["typ": "JWT"], ["typ": "jwt"], ["typ": .null], ["kid": nil], ["kid": .null]]
            as [[String: JSON?]])
    func `a header of few words is enough`(header: [String: JSON?]) throws {
        #expect(try verdict([:], header: header) == nil)
    }

    @Test func `a token signed by somebody else is refused`() throws {
        let token = try TokenMint(.es256).token(ordinary)
        let error = #expect(throws: OAuthError.self) {
            try IDToken.verify(token, keys: TokenMint(.es256).keys(), expecting: expectations())
        }
        #expect(error == .invalidIDToken(claim: "signature", reason: "not made by the provider's key"))
    }

    @Test func `PR-12, ADV-17, ADV-23: a MAC made with the published key is no signature`() throws {
        // The classic confusion (CVE-2022-29217): the header says HS256, the "secret" is the public key.
        let mint = try TokenMint(.rs256)
        let header = Base64URL.encode(#"{"alg":"HS256","kid":"k1"}"#.utf8)
        let payload = Base64URL.encode(ordinary.serialized())
        let mac = Base64URL.encode(Digest.sha256(mint.jwk().text + header + "." + payload))
        let token = Secret("\(header).\(payload).\(mac)")
        let error = #expect(throws: OAuthError.self) {
            try IDToken.verify(token, keys: mint.keys(), expecting: expectations())
        }
        guard case .invalidIDToken("alg", _)? = error else { throw Unexpected("refused for another reason") }
    }

    @Test func `PR-07: a claim written twice is refused`() throws {
        let mint = try TokenMint(.es256)
        for duplicate in [#""sub":"eve""#, #""\u0073ub":"eve""#, #""aud":"other""#, #""nonce":"x""#] {
            let text = ordinary.text.dropLast() + "," + duplicate + "}"
            let token = try mint.token(headerText: mint.header.serialized(), payload: Array(text.utf8))
            let error = #expect(throws: OAuthError.self) {
                try IDToken.verify(token, keys: mint.keys(), expecting: expectations())
            }
            #expect(error == .invalidIDToken(claim: "payload", reason: "not a JSON object, or a member twice"))
        }
    }

    @Test func `identifiers are compared byte by byte`() throws {
        let composed = "https://id.example/caf\u{E9}"
        let decomposed = "https://id.example/cafe\u{301}"
        var expected = expectations()
        expected.issuer = composed
        #expect(try verdict(["iss": .string(composed)], expecting: expected) == nil)
        #expect(try verdict(["iss": .string(decomposed)], expecting: expected) == "iss")
        expected = expectations()
        expected.clientID = "caf\u{E9}"
        #expect(try verdict(["aud": "cafe\u{301}"], expecting: expected) == "aud")
        #expect(try verdict(["aud": ["caf\u{E9}", "cafe\u{301}"]], expecting: expected) == "azp")
    }

    @Test func `a missing key is told apart from a wrong signature`() throws {
        let mint = try TokenMint(.es256, kid: "old")
        let rotated = try TokenMint(.es256, kid: "new")
        #expect(IDToken.isKeyMissing(for: try rotated.token(ordinary), in: try mint.keys()))
        #expect(!IDToken.isKeyMissing(for: try mint.token(ordinary), in: try mint.keys()))
        #expect(!IDToken.isKeyMissing(for: Secret("not a token"), in: try mint.keys()))
        #expect(!IDToken.isKeyMissing(for: try rotated.token(ordinary, header: mint.header), in: try mint.keys()))
    }
}

@Suite struct `Refreshed ID token` {
    private func previous() throws -> IDTokenExpectations.Previous {
        let mint = try TokenMint(.es256)
        return .init(try IDToken.verify(mint.token(ordinary), keys: mint.keys(), expecting: expectations()))
    }

    @Test(
        arguments: [
            [:], ["nonce": nil], ["auth_time": nil], ["auth_time": .double(1_799_999_980.5)],
            ["iat": .integer(now + 60)],
            ["aud": ["ringback"]], ["email": "other@example.org"],
        ] as [[String: JSON?]])
    func `the same person at the same client goes on`(changes: [String: JSON?]) throws {
        #expect(try verdict(changes, expecting: expectations(nonce: nil, previous: previous())) == nil)
    }

    @Test(
        arguments: [
            ("iss", ["iss": "https://id.example/realms/main1"]), ("sub", ["sub": "eve"]), ("sub", ["sub": "Ann"]),
            ("aud", ["aud": ["ringback", "other"], "azp": "ringback"]), ("azp", ["azp": "ringback"]),
            ("auth_time", ["auth_time": .integer(now)]), ("nonce", ["nonce": "another"]), ("nonce", ["nonce": ""]),
        ] as [(String, [String: JSON?])])
    func `OpenID Connect Core 12_2 is kept`(claim: String, changes: [String: JSON?]) throws {
        #expect(try verdict(changes, expecting: expectations(nonce: nil, previous: previous())) == claim)
    }

    @Test func `an audience or party that goes away is another token`() throws {
        let wide = IDTokenExpectations.Previous(
            subject: "ann", audience: ["ringback", "other"], authorizedParty: "ringback")
        let expected = expectations(nonce: nil, previous: wide)
        #expect(try verdict(["aud": ["other", "ringback"], "azp": "ringback"], expecting: expected) == nil)
        #expect(try verdict(["azp": "ringback"], expecting: expected) == "aud")
        let party = IDTokenExpectations.Previous(subject: "ann", audience: ["ringback"], authorizedParty: "ringback")
        #expect(try verdict([:], expecting: expectations(nonce: nil, previous: party)) == "azp")
    }

    @Test func `an unknown nonce and time of before are not demanded`() throws {
        let bare = IDTokenExpectations.Previous(subject: "ann", audience: ["ringback"])
        #expect(try verdict(["nonce": "any"], expecting: expectations(nonce: nil, previous: bare)) == nil)
    }
}
