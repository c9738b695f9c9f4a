import Cryptography
import OAuth
import RingbackBase
import Testing

@testable import SupabaseAuth

/// A small honest project: real keys, real signatures.
private struct Mint {
    let algorithm: SignatureAlgorithm
    let key: PrivateKey

    init(_ algorithm: SignatureAlgorithm) throws {
        self.algorithm = algorithm
        key =
            switch algorithm {
            case .es256: try PrivateKey.generate(.p256)
            case .es512: try PrivateKey.generate(.p521)
            case .edDSA: try PrivateKey.generate(.ed25519)
            default: try PrivateKey.generate(.rsa2048)
            }
    }

    func token(_ claims: JSONObject, kid: String = "k1") throws -> Secret {
        let header: JSON = ["alg": .string(algorithm.rawValue), "kid": .string(kid), "typ": "JWT"]
        let payload = JSON.object(claims).serialized()
        let signed = "\(Base64URL.encode(header.serialized())).\(Base64URL.encode(payload))"
        let signature = try key.sign(message: Array(signed.utf8), algorithm: algorithm)
        return Secret("\(signed).\(Base64URL.encode(signature))")
    }

    func keys(kid: String = "k1") throws -> JSONWebKeySet {
        func text(_ bytes: [UInt8]) -> JSON { .string(Base64URL.encode(bytes)) }
        var jwk: JSON
        switch key.publicKey.parts {
        case .rsa(let modulus, let exponent): jwk = ["kty": "RSA", "n": text(modulus), "e": text(exponent)]
        case .ellipticCurve(let curve, let x, let y):
            jwk = ["kty": "EC", "crv": .string(curve.rawValue), "x": text(x), "y": text(y)]
        case .ed25519(let x): jwk = ["kty": "OKP", "crv": "Ed25519", "x": text(x)]
        }
        guard var object = jwk.object else { throw TestFailure() }
        object["kid"] = .string(kid)
        object["use"] = "sig"
        object["key_ops"] = ["verify"]
        jwk = .object(object)
        return try JSONWebKeySet(json: ["keys": [jwk]])
    }
}

private struct TestFailure: Error {}

private let now = 1_787_396_500

private func claims(_ changes: KeyValuePairs<String, JSON?> = [:]) -> JSONObject {
    var claims = JSONObject([
        "iss": "https://ref.supabase.co/auth/v1", "sub": "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e",
        "aud": "authenticated", "exp": 1_787_400_000, "iat": 1_787_396_400, "role": "authenticated", "aal": "aal1",
        "amr": [["method": "oauth", "timestamp": 1_787_396_400, "provider": "x"], "password"],
        "session_id": "0b9d0000-1111-4222-8333-444444444444", "is_anonymous": false,
    ])
    for (name, value) in changes { claims[name] = value }
    return claims
}

@Suite struct `An access token` {
    private let project: SupabaseProject

    init() throws { project = try SupabaseProject(parsing: "https://ref.supabase.co", apiKey: nil) }

    @Test(arguments: [.es256, .es512, .rs256, .rs512, .edDSA] as [SignatureAlgorithm])
    func `signed with the project's key is believed`(algorithm: SignatureAlgorithm) throws {
        let mint = try Mint(algorithm)
        let check = try AccessTokenCheck(mint.token(claims()), keys: mint.keys(), project: project, now: now)
        guard case .verified(let claims) = check else { throw Unexpected(check) }
        #expect(claims.subject == "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e")
        #expect(claims.sessionID == "0b9d0000-1111-4222-8333-444444444444")
        #expect(claims.assurance == .aal1)
        #expect(claims.methods.map(\.name) == ["oauth", "password"])
        #expect(claims.methods.first?.at == 1_787_396_400 && claims.methods.first?.provider == "x")
        #expect(claims.expiresAt == 1_787_400_000 && claims.issuedAt == 1_787_396_400)
    }

    @Test(arguments: ["HS256", "HS384", "HS512", "PS256", "ES384", "XX"])
    func `signed in another way is the server's to judge`(algorithm: String) throws {
        let header: JSON = ["alg": .string(algorithm), "typ": "JWT"]
        let payload = JSON.object(claims()).serialized()
        let token = Secret("\(Base64URL.encode(header.serialized())).\(Base64URL.encode(payload)).c2ln")
        let none = try JSONWebKeySet(json: ["keys": []])
        #expect(AccessTokenCheck(token, keys: none, project: project, now: now) == .askServer)
    }

    @Test(arguments: [["alg": "none"], ["alg": "None"], ["typ": "JWT"], ["alg": ""], ["alg": 1]] as [JSON])
    func `that nobody signed is refused`(header: JSON) throws {
        let payload = JSON.object(claims()).serialized()
        let token = Secret("\(Base64URL.encode(header.serialized())).\(Base64URL.encode(payload)).c2ln")
        let check = AccessTokenCheck(token, keys: try Mint(.es256).keys(), project: project, now: now)
        #expect(check == .refused(claim: "alg", reason: "not signed"))
    }

    @Test(arguments: ["", "a", "a.b", "a.b.c.d", "e30.e30", "!.!.!"]) func `that is none is refused`(text: String)
        throws
    {
        let check = AccessTokenCheck(Secret(text), keys: try Mint(.es256).keys(), project: project, now: now)
        guard case .refused = check else { throw Unexpected(check) }
    }

    @Test func `of a key that is not in the set asks for the set`() throws {
        let mint = try Mint(.es256)
        let token = try mint.token(claims(), kid: "k2")
        #expect(try AccessTokenCheck(token, keys: mint.keys(), project: project, now: now) == .keyMissing)
        let none = try JSONWebKeySet(json: ["keys": []])
        #expect(AccessTokenCheck(token, keys: none, project: project, now: now) == .keyMissing)
    }

    @Test func `of another key is refused`() throws {
        let token = try Mint(.es256).token(claims())
        let check = AccessTokenCheck(token, keys: try Mint(.es256).keys(), project: project, now: now)
        #expect(check == .refused(claim: "signature", reason: "not made by the provider's key"))
    }

    @Test(
        arguments: [
            (["aud": "anon"], "aud"), (["aud": nil], "aud"), (["aud": ["a", "b"]], "aud"),
            (["iss": "https://other.supabase.co/auth/v1"], "iss"), (["iss": "https://ref.supabase.co/auth/v1/"], "iss"),
            (["exp": nil], "exp"), (["exp": .integer(now - 121)], "exp"), (["exp": "1787400000"], "exp"),
            (["sub": nil], "sub"), (["sub": ""], "sub"), (["sub": "a b"], "sub"), (["sub": 1], "sub"),
        ] as [(KeyValuePairs<String, JSON?>, String)])
    func `whose claims do not hold is refused`(changes: KeyValuePairs<String, JSON?>, claim: String) throws {
        let mint = try Mint(.es256)
        let check = try AccessTokenCheck(mint.token(claims(changes)), keys: mint.keys(), project: project, now: now)
        guard case .refused(claim, _) = check else { throw Unexpected(check) }
    }

    @Test(
        arguments: [
            ["iss": nil], ["aud": ["authenticated", "x"]], ["exp": .integer(now - 119)],
            ["exp": .double(1_787_400_000.5)],
            ["amr": ["password"]], ["amr": nil], ["aal": "aal3"], ["session_id": nil],
        ] as [KeyValuePairs<String, JSON?>])
    func `of an odd but honest server is believed`(changes: KeyValuePairs<String, JSON?>) throws {
        let mint = try Mint(.es256)
        let check = try AccessTokenCheck(mint.token(claims(changes)), keys: mint.keys(), project: project, now: now)
        guard case .verified = check else { throw Unexpected(check) }
    }

    @Test func `that has expired passes where it is refreshed at once`() throws {
        let mint = try Mint(.es256)
        let token = try mint.token(claims(["exp": 1]))
        guard case .verified = try AccessTokenCheck(token, keys: mint.keys(), project: project, now: nil)
        else { throw Unexpected("refused") }
    }

    @Test func `is of the same session if user and session are the same`() throws {
        let mine = try #require(AccessTokenClaims(claims()))
        #expect(mine.isSameSession(as: try #require(AccessTokenClaims(claims(["aal": "aal2"])))))
        #expect(!mine.isSameSession(as: try #require(AccessTokenClaims(claims(["sub": "x"])))))
        #expect(!mine.isSameSession(as: try #require(AccessTokenClaims(claims(["session_id": "x"])))))
        let without = try #require(AccessTokenClaims(claims(["session_id": nil])))
        #expect(!without.isSameSession(as: without))
    }

    @Test func `says how surely the person was recognized`() throws {
        #expect(AssuranceLevel.aal1 < .aal2)
        let recovery = AccessTokenClaims(claims(["amr": [["method": "recovery", "timestamp": 1]]]))
        #expect(recovery?.isRecovery == true)
        #expect(AccessTokenClaims(claims())?.isRecovery == false)
    }
}
