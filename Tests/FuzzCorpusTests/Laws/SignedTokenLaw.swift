import Cryptography
import OAuth
import RingbackBase

/// Signed tokens as text: one spelling each, and none is believed without a key.
enum SignedTokenLaw {
    static func check(_ bytes: [UInt8]) throws {
        let secret = Secret(bytes: bytes)
        let nobody = try JSONWebKeySet(json: ["keys": []])
        let somebody = try IDTokenLaw.issuer
        let expected = IDTokenExpectations(
            issuer: "https://id.example.org", clientID: "ringback", now: 1_800_000_000,
            allowedAlgorithms: Set(SignatureAlgorithm.allCases))
        for keys in [nobody, try somebody.keys()] {
            try hold("nobody's token is believed by nobody", !isBelieved(secret, keys, expected))
        }
        guard let token = try? JSONWebSignature(parsing: secret) else {
            try hold("for what is no token no key is missing", !IDToken.isKeyMissing(for: secret, in: nobody))
            return
        }
        try hold("a token has an end", bytes.count <= JSONWebSignature.maxLength)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        try hold("a token has three parts", parts.count == 3)
        for part in parts {
            try hold(
                "a part has one spelling",
                Base64URL.decode(part).map { Base64URL.encodeToBytes($0) == Array(part) } ?? false)
        }
        let header = try JSON(parsing: Base64URL.decode(parts[0]) ?? [])
        try hold(
            "the algorithm is the header's", header["alg"]?.string.flatMap(SignatureAlgorithm.init) == token.algorithm)
        try hold("the name of the key is the header's", header["kid"]?.string == token.keyID)
        try hold("no extension is passed over", header["crit"] == nil)
        try hold("without keys one is missing", token.isKeyMissing(in: nobody))
        for byte in [UInt8(ascii: "="), 0x0A, UInt8(ascii: ".")] {
            try hold("nothing may follow", (try? JSONWebSignature(parsing: Secret(bytes: bytes + [byte]))) == nil)
        }
    }

    private static func isBelieved(_ token: Secret, _ keys: JSONWebKeySet, _ expected: IDTokenExpectations) -> Bool {
        (try? IDToken.verify(token, keys: keys, expecting: expected)) != nil
    }
}
