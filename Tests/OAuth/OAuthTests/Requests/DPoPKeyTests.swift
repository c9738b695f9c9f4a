import Cryptography
import RingbackBase
import Testing

@testable import OAuth

@Suite struct `A key that tokens are bound to` {
    private let key: DPoPKey

    init() throws { key = try DPoPKey() }

    private func part(_ proof: Secret?, _ index: Int) throws -> JSONObject {
        let parts = try #require(proof).revealed().split(separator: ".")
        #expect(parts.count == 3)
        let bytes = try #require(Base64URL.decode(parts[index]))
        return try #require(try JSON(parsing: bytes).object)
    }

    @Test func `is the same after it was stored, and another one each time`() throws {
        let read = try #require(DPoPKey(stored: key.stored))
        #expect(read == key && read.thumbprint == key.thumbprint)
        #expect(try DPoPKey() != key)
        #expect(key.thumbprint.utf8.count == 43)
    }

    @Test func `is not read from other text`() throws {
        let text = key.stored.revealed()
        let other = try DPoPKey().stored.revealed()
        for wrong in [
            "", "AAAA", String(text.dropLast()), text + "AAAA", String(text.prefix(43)) + other.dropFirst(43),
        ] {
            #expect(DPoPKey(stored: Secret(wrong)) == nil)
        }
    }

    /// RFC 9449 section 6.1 with the key of figure 2.
    @Test func `has the thumbprint of RFC 7638`() {
        let jwk = JSONObject([
            .init("crv", "P-256"), .init("kty", "EC"), .init("x", "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs"),
            .init("y", "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"),
        ])
        #expect(DPoPKey.thumbprint(of: jwk) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    /// RFC 9449 sections 4.2 and 7.1.
    @Test func `proves itself for one request`() throws {
        let proof = key.proof(
            of: "GET", to: "https://resource.example.org/protectedresource?a=b#c",
            accessToken: Secret("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"), nonce: "eyJ7S_zG.eyJH0-Z.HX4w-7v",
            now: 1_562_262_618)
        let header = try part(proof, 0)
        #expect(header["typ"] == "dpop+jwt" && header["alg"] == "ES256" && header.members.count == 3)
        let jwk = try #require(header["jwk"]?.object)
        #expect(jwk.names.sorted() == ["crv", "kty", "x", "y"] && DPoPKey.thumbprint(of: jwk) == key.thumbprint)
        let claims = try part(proof, 1)
        #expect(claims["htm"] == "GET" && claims["htu"] == "https://resource.example.org/protectedresource")
        #expect(claims["iat"] == 1_562_262_618 && claims["nonce"] == "eyJ7S_zG.eyJH0-Z.HX4w-7v")
        #expect(claims["ath"] == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
        #expect((claims["jti"]?.string ?? "").utf8.count == 22)
        let signed = try JSONWebSignature(parsing: try #require(proof))
        #expect(signed.type == "dpop+jwt")
        _ = try signed.verify(with: JSONWebKeySet(json: ["keys": [.object(jwk)]]), allowed: [.es256])
    }

    @Test func `says of a request without a token and a nonce no more than it has, and never the same`() throws {
        let proofs = (0..<2).map { _ in key.proof(of: "POST", to: "https://ID.example:443", now: 7) }
        let claims = try proofs.map { try part($0, 1) }
        #expect(claims[0].names.sorted() == ["htm", "htu", "iat", "jti"] && claims[0]["jti"] != claims[1]["jti"])
        // As a server sees its own address (RFC 3986 section 6.2).
        #expect(claims[0]["htu"] == "https://id.example/")
        #expect(
            key.proof(of: "GET", to: "ftp://id.example/", now: 7) == nil && key.proof(of: "GET", to: "x", now: 7) == nil
        )
    }
}

@Suite struct `What a server says about proofs` {
    private func response(_ status: Int, _ body: String = "", _ fields: [(String, String)] = []) -> HTTPResponse {
        HTTPResponse(status: status, fields: HTTPFields(fields), body: Secret(body))
    }

    @Test func `a nonce is taken in the characters of RFC 9449 alone`() {
        for (value, isTaken) in [
            ("eyJ7S_zG.eyJH0-Z.HX4w-7v", true), ("a!~", true), ("", false), ("a b", false), ("a\"", false),
            ("a\\", false), ("a\u{7F}", false), ("ä", false), (String(repeating: "a", count: 2_049), false),
        ] {
            #expect((DPoPNonce.stated(in: HTTPFields([("dpop-nonce", value)])) != nil) == isTaken, "\(value)")
        }
        #expect(DPoPNonce.stated(in: HTTPFields()) == nil)
        #expect(DPoPNonce.stated(in: HTTPFields([("DPoP-Nonce", "a"), ("DPoP-Nonce", "a")])) == nil)
    }

    @Test func `a proof is refused by an error, or by a challenge`() {
        #expect(DPoPRefusal(in: response(400, #"{"error":"use_dpop_nonce"}"#)) == .nonce)
        #expect(DPoPRefusal(in: response(400, #"{"error":"invalid_dpop_proof"}"#)) == .proof)
        for (error, refusal) in [("use_dpop_nonce", DPoPRefusal.nonce), ("invalid_dpop_proof", .proof)] {
            let field = ("WWW-Authenticate", "Bearer realm=\"a\", DPoP algs=\"ES256\", error=\"\(error)\"")
            #expect(DPoPRefusal(in: response(401, "no", [field])) == refusal)
        }
        for other in [
            response(200, #"{"error":"use_dpop_nonce"}"#), response(503, #"{"error":"use_dpop_nonce"}"#),
            response(400, #"{"error":"invalid_grant"}"#), response(401),
            response(401, "", [("WWW-Authenticate", "Bearer error=\"use_dpop_nonce\"")]),
        ] { #expect(DPoPRefusal(in: other) == nil) }
    }

    @Test func `the type of an access token is what the account takes`() throws {
        func isTaken(_ type: String, _ use: DPoPUse) throws -> Bool {
            let tokens = try TokenResponse(
                reading: response(200, #"{"access_token":"a","token_type":"\#(type)","refresh_token":"r"}"#))
            #expect(tokens.refreshToken == Secret("r"))
            return (try? tokens.tokenSet(under: use)) != nil
        }
        for (use, takesBearer, takesBound) in [
            (DPoPUse.off, true, false), (.refreshOnly, true, false), (.required, false, true), (.automatic, true, true),
        ] {
            #expect(try isTaken("bearer", use) == takesBearer && isTaken("dpop", use) == takesBound)
            #expect(try !isTaken("mac", use))
        }
    }
}
