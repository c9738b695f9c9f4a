import Cryptography
import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `ID tokens` {
    @Test(arguments: SandboxAlgorithm.allCases) func `are signed with a published key`(
        algorithm: SandboxAlgorithm
    ) async throws {
        let visitor = Visitor.quick { $0.algorithm = algorithm }
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.header["alg"] == .string(algorithm.rawValue))
        #expect(try await token.isSigned(with: visitor.get("/jwks").json))
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["id_token_signing_alg_values_supported"] == [.string(algorithm.rawValue)])
    }

    @Test func `say who signed in, for whom, when and why`() async throws {
        let visitor = Visitor.quick()
        let now = visitor.clock.now
        let tokens = try await visitor.signIn()
        let claims = try TakenApart(tokens.text("id_token")).claims
        #expect(claims["iss"] == .string(origin))
        #expect(claims["sub"] == "alice")
        #expect(claims["aud"] == "ringback-demo")
        #expect(claims["nonce"] == "the-nonce")
        #expect(claims["iat"] == .integer(now))
        #expect(claims["exp"] == .integer(now + 3_600))
        #expect(claims["auth_time"] == .integer(now))
        let digest = Digest.sha256(try tokens.text("access_token"))
        #expect(claims["at_hash"] == .string(Base64URL.encode(digest.prefix(16))))
    }

    @Test func `of a refresh keep the time of the sign-in`() async throws {
        let visitor = Visitor.quick()
        let first = try await visitor.signIn()
        let signedInAt = visitor.clock.now
        visitor.clock.advance(by: 500)
        let claims = try TakenApart(await visitor.refresh(first.text("refresh_token")).json.text("id_token")).claims
        #expect(claims["auth_time"] == .integer(signedInAt))
        #expect(claims["iat"] == .integer(signedInAt + 500))
        await visitor.control(["id_token_on_refresh": false])
        let other = try await visitor.signIn()
        #expect(await visitor.refresh(try other.text("refresh_token")).json["id_token"] == nil)
    }

    // OpenID Connect Core's own example of a hash, appendix A.3.
    @Test func `hash an access token as the standard's example does`() {
        #expect(IDTokenWriter.hash("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y", .rs256) == "77QmUPtjPfzWtF2AnpK9RQ")
        #expect(IDTokenWriter.hash("x", .edDSA).utf8.count == 43)
    }
}

@Suite struct `The key set` {
    @Test func `holds keys to pass over`() async throws {
        let keys = try #require(await Visitor.quick().get("/jwks").json["keys"]?.array)
        #expect(keys.contains { $0["use"] == "enc" })
        #expect(keys.contains { $0["crv"] == "secp256k1" })
        #expect(keys.contains { $0["kty"] == "AKP" })
        #expect(keys.contains { $0["crv"] == "P-256" && $0["use"] == "sig" })
        #expect(keys.contains { $0["crv"] == "Ed25519" })
        let ids = keys.compactMap { $0["kid"]?.string }
        #expect(Set(ids).count == keys.count)
        #expect(keys.allSatisfy { $0["d"] == nil })
    }

    @Test func `changes when keys are rotated`() async throws {
        let visitor = Visitor.quick()
        let old = try TakenApart(await visitor.signIn().text("id_token"))
        await visitor.control(["rotate_keys": "keep"])
        let new = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(old.header["kid"] != new.header["kid"])
        let both = await visitor.get("/jwks").json
        #expect(try old.isSigned(with: both))
        #expect(try new.isSigned(with: both))
        await visitor.control(["rotate_keys": true])
        let neither = await visitor.get("/jwks").json
        #expect(try !old.isSigned(with: neither))
        #expect(try !new.isSigned(with: neither))
    }

    @Test func `can do without key ids`() async throws {
        let visitor = Visitor.quick { $0.omitsKeyIDs = true }
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.header["kid"] == nil)
        let keys = await visitor.get("/jwks").json
        #expect(keys["keys"]?.array?.allSatisfy { $0["kid"] == nil } == true)
        #expect(try token.isSigned(with: keys))
    }

    @Test func `belongs to one issuer`() async throws {
        var visitor = Visitor.quick()
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        visitor.prefix = "/tenant-a"
        #expect(try await !token.isSigned(with: visitor.get("/jwks").json))
    }
}
