import Cryptography
import RingbackBase
import TestSupport
import Testing

@testable import OAuth

@Suite struct `A client's key` {
    private static let issuer = "https://id.example.org/realms/main"

    private func metadata(offering algorithms: [JSON]? = nil, issuer: String? = issuer) throws -> ProviderMetadata {
        var metadata = try ProviderMetadata(
            issuer: issuer, authorizationEndpoint: "https://id.example.org/a", tokenEndpoint: "https://id.example.org/t"
        )
        metadata.tokenEndpointSigningAlgorithms = algorithms?.compactMap(\.string)
        return metadata
    }

    private func parameters(_ key: String, _ metadata: ProviderMetadata) throws -> [String: String] {
        let assertion = try ClientAssertion(key: ClientKey(parsing: Secret(key)), metadata: metadata, now: 1_000)
        let registration = ClientRegistration(clientID: "me", authentication: .privateKeyJWT, assertion: assertion)
        #expect(registration.isComplete)
        let request = HTTPRequest.form([], to: "https://id.example.org/t", by: registration)
        #expect(request.authorization == nil)
        let pairs = try FormEncoding.parse(request.body?.revealedBytes() ?? [])
        return Dictionary(uniqueKeysWithValues: pairs.map { ($0.name, $0.value) })
    }

    private func part(_ index: Int, of token: String) throws -> JSONObject {
        let part = token.split(separator: ".")[index]
        let bytes = try #require(Base64URL.decode(part))
        return try #require(try JSON(parsing: bytes).object)
    }

    /// ADV-19.
    @Test func `PR-14, FAPI-33, NAT-41: an assertion is for the issuer as the one string, a minute, and one use`()
        throws
    {
        let first = try parameters(TestJWK.p256, metadata())
        let second = try parameters(TestJWK.p256, metadata())
        #expect(Set(first.keys) == ["client_id", "client_assertion_type", "client_assertion"])
        #expect(first["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        let claims = try part(1, of: #require(first["client_assertion"]))
        #expect(claims["aud"] == .string(Self.issuer))
        #expect(claims["iss"] == "me" && claims["sub"] == "me" && first["client_id"] == "me")
        #expect(claims["iat"] == 1_000 && claims["exp"] == 1_060)
        #expect(claims["jti"]?.string?.utf8.count == 22)
        #expect(try claims["jti"] != part(1, of: #require(second["client_assertion"]))["jti"])
    }

    @Test func `one registration never says the same assertion twice`() throws {
        let assertion = try ClientAssertion(
            key: ClientKey(parsing: Secret(TestJWK.ed25519)), metadata: metadata(), now: 1_000)
        #expect(assertion.text(clientID: "me") != assertion.text(clientID: "me"))
    }

    @Test func `an assertion verifies with the published half, by an algorithm of the key`() throws {
        for (key, algorithm) in [
            (TestJWK.p256, SignatureAlgorithm.es256), (TestJWK.ed25519, .edDSA), (TestJWK.rsa, .ps256),
            (TestKeyFile.p256, .es256), (TestKeyFile.rsa, .rs256),
        ] {
            let token = try #require(try parameters(key, metadata())["client_assertion"])
            #expect(try part(0, of: token)["alg"]?.string == algorithm.rawValue)
            #expect(try part(0, of: token)["typ"] == "JWT")
            #expect(try part(0, of: token)["kid"] == (key == TestJWK.rsa ? "r1" : nil))
            let privateKey = key.hasPrefix("{") ? nil : try PrivateKey(pem: Secret(key))
            let published = try privateKey?.publicKey ?? publicHalf(of: key)
            let signed = token.utf8.prefix(upTo: try #require(token.utf8.lastIndex(of: UInt8(ascii: "."))))
            let signature = try #require(Base64URL.decode(token.split(separator: ".")[2]))
            #expect(published.verify(signature: signature, message: Array(signed), algorithm: algorithm))
        }
    }

    private func publicHalf(of key: String) throws -> PublicKey {
        let members = try #require(try JSON(parsing: Array(key.utf8)).object).members
        let open = JSONObject(members.filter { !["d", "p", "q", "dp", "dq", "qi"].contains($0.name) })
        return try #require(JSONWebKeySet.Key(parsing: open)).publicKey
    }

    @Test func `the provider's word decides among what the key can do`() throws {
        let token = try #require(
            try parameters(TestKeyFile.rsa, metadata(offering: ["ES256", "PS384", "PS256"]))["client_assertion"])
        #expect(try part(0, of: token)["alg"] == "PS256")
        for (key, offered) in [(TestKeyFile.rsa, ["ES256"]), (TestJWK.rsa, ["RS256"]), (TestJWK.p256, [])] {
            #expect(throws: OAuthError.self) { try parameters(key, metadata(offering: offered.map { .string($0) })) }
        }
    }

    @Test func `endpoints by hand without an issuer are named by the token endpoint`() throws {
        let token = try #require(try parameters(TestJWK.p256, metadata(issuer: nil))["client_assertion"])
        #expect(try part(1, of: token)["aud"] == "https://id.example.org/t")
    }

    @Test func `a key in PEM is named by the configuration, one of JSON by itself`() throws {
        func name(_ key: String, _ keyID: String?) throws -> JSON? {
            let assertion = try ClientAssertion(
                key: ClientKey(parsing: Secret(key), keyID: keyID), metadata: metadata(), now: 1_000)
            return try part(0, of: #require(assertion.text(clientID: "me")).revealed())["kid"]
        }
        #expect(try name(TestKeyFile.rsa, "k1") == "k1")
        #expect(try name(TestJWK.p256, "k1") == "k1")
        #expect(try name(TestJWK.rsa, "r1") == "r1")
        #expect(throws: OAuthError.self) { try name(TestJWK.rsa, "k1") }
    }

    @Test func `a certificate beside the key names it by its thumbprint, as Microsoft looks for it`() throws {
        let certificate = Array("not really a certificate, which nobody here needs to read".utf8)
        let block = "-----BEGIN CERTIFICATE-----\n\(Base64.encode(certificate))\n-----END CERTIFICATE-----\n"
        for text in [block + TestKeyFile.rsa, TestKeyFile.rsa + "\n" + block + block.replacing("bm90", with: "AAAA")] {
            let token = try #require(try parameters(text, metadata())["client_assertion"])
            let header = try part(0, of: token)
            #expect(header["x5t#S256"]?.string == Base64URL.encode(Digest.sha256(certificate)))
            #expect(header["alg"] == "PS256")
            #expect(
                try part(0, of: #require(parameters(text, metadata(offering: ["RS256"]))["client_assertion"]))["alg"]
                    == "RS256")
        }
        let token = try #require(try parameters(TestKeyFile.p256 + "\n" + block, metadata())["client_assertion"])
        #expect(try part(0, of: token)["alg"] == "ES256")
    }

    @Test func `what is no private key is refused, and its text is not repeated`() throws {
        let broken = try #require(try JSON(parsing: Array(TestJWK.p256.utf8)).object)
        var variants = ["", "{", "{}", "garbage", TestJWK.p256 + TestJWK.p256]
        for name in ["d", "x", "y", "crv", "kty"] {
            variants.append(JSON.object(JSONObject(broken.members.filter { $0.name != name })).text)
            var other = broken
            other[name] = "AAAA"
            variants.append(JSON.object(other).text)
        }
        var forEncryption = broken
        forEncryption["use"] = "enc"
        variants.append(JSON.object(forEncryption).text)
        for text in variants {
            let error = #expect(throws: OAuthError.self) { try ClientKey(parsing: Secret(text)) }
            guard case .misconfigured(let reason)? = error else { continue }
            #expect(!reason.contains("jpsQ"))
        }
    }

    @Test func `key operations of a private key do not stand in its way`() throws {
        var key = try #require(try JSON(parsing: Array(TestJWK.p256.utf8)).object)
        key["key_ops"] = ["sign"]
        _ = try ClientKey(parsing: Secret(" \n" + JSON.object(key).text))
    }

    @Test func `a registration without its key is not complete, and sends nothing in its place`() {
        let registration = ClientRegistration(clientID: "me", authentication: .privateKeyJWT, secret: Secret("s"))
        #expect(!registration.isComplete)
        let request = HTTPRequest.form([], to: "https://id.example.org/t", by: registration)
        #expect(request.body?.revealed() == "client_id=me")
    }
}
