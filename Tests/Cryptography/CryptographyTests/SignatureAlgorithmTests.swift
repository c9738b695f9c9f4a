import Cryptography
import Testing

@Suite struct `Signature algorithm` {
    @Test(arguments: SignatureAlgorithm.allCases) func `a name goes both ways`(algorithm: SignatureAlgorithm) {
        #expect(SignatureAlgorithm(rawValue: algorithm.rawValue) == algorithm)
    }

    @Test func `RFC 9864: Ed25519 is EdDSA by its newer name`() {
        #expect(SignatureAlgorithm(rawValue: "Ed25519") == .edDSA)
        #expect(SignatureAlgorithm.edDSA.rawValue == "EdDSA")
    }

    @Test(arguments: [
        "none", "None", "HS256", "HS384", "HS512", "rs256", "RS256 ", " RS256", "RS256\0", "RS1", "ES256K", "Ed448",
        "ed25519", "EDDSA", "RSA-OAEP", "dir", "", "R\u{FF33}256", "RS256\u{200D}",
    ])
    func `every other name is no algorithm`(name: String) {
        #expect(SignatureAlgorithm(rawValue: name) == nil)
    }
}
