import Cryptography
import OAuth
import RingbackBase

/// ID tokens with a signature that holds. The first line of an input is the header, the rest are the claims: an issuer
/// of our own signs both, so that every check behind the signature is reached.
enum IDTokenLaw {
    /// Makes tokens that are signed, whatever is in them.
    struct Issuer: Sendable {
        let key: PrivateKey

        func keys() throws -> JSONWebKeySet {
            try JSONWebKeySet(json: ["keys": [.object(KeySetLaw.jwk(key.publicKey))]])
        }

        func token(_ header: [UInt8], _ claims: [UInt8]) throws -> [UInt8] {
            let signed = Base64URL.encodeToBytes(header) + [UInt8(ascii: ".")] + Base64URL.encodeToBytes(claims)
            let signature = try key.sign(message: signed, algorithm: .edDSA)
            return signed + [UInt8(ascii: ".")] + Base64URL.encodeToBytes(signature)
        }
    }

    private static let made = Result { Issuer(key: try PrivateKey.generate(.ed25519)) }
    static var issuer: Issuer {
        get throws { try made.get() }
    }

    private static let now = 1_800_000_000
    private static let name = "https://id.example.org/realms/main"

    static func check(_ bytes: [UInt8]) throws {
        let (line, payload) = bytes.headLineAndRest
        let header = line.isEmpty ? Array(#"{"alg":"EdDSA"}"#.utf8) : Array(line.utf8)
        let token = try issuer.token(header, payload)
        let access = Secret("access")
        let expected = IDTokenExpectations(
            issuer: name, clientID: "ringback", nonce: Secret("n-0S6_WzA2Mj"), now: now, leeway: 120,
            accessToken: access, code: nil, allowedAlgorithms: [.edDSA], maxAge: nil)
        guard let idToken = try? IDToken.verify(Secret(bytes: token), keys: issuer.keys(), expecting: expected) else {
            return
        }
        try checkClaims(idToken, JSON(parsing: payload), access)
        try checkForgeries(of: token, expected)
        let head = try JSON(parsing: header)
        try hold("no extension is passed over", head["crit"] == nil)
        try hold("an access token is no ID token", head["typ"]?.string?.lowercased().hasSuffix("+jwt") != true)
    }

    private static func checkClaims(_ idToken: IDToken, _ claims: JSON, _ access: Secret) throws {
        func bytes(_ claim: String) -> [UInt8]? { claims[claim]?.string.map { Array($0.utf8) } }
        try hold("the issuer is ours", bytes("iss") == Array(name.utf8))
        try hold("the subject is there", bytes("sub") == Array(idToken.subject.utf8))
        try hold("a subject is 1 to 255 bytes", (1...255).contains(idToken.subject.utf8.count))
        let audience = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
        try hold("the token is for us", audience.contains { $0.utf8.elementsEqual("ringback".utf8) })
        let isShared = !audience.allSatisfy { $0.utf8.elementsEqual("ringback".utf8) }
        let party = bytes("azp")
        try hold("of several audiences it is ours", !isShared || party == Array("ringback".utf8))
        try hold("it was issued to us", party == nil || party == Array("ringback".utf8))
        try hold("it has not expired", idToken.expiresAt + 120 > now)
        try hold("it was issued before", idToken.issuedAt <= now + 120 && idToken.issuedAt >= 0)
        try hold("it is of this sign-in", bytes("nonce") == Array("n-0S6_WzA2Mj".utf8))
        let half = Base64URL.encode(Digest.sha512(access).prefix(32))
        try hold("it belongs to the access token", (bytes("at_hash") ?? Array(half.utf8)) == Array(half.utf8))
        if let notBefore = claims["nbf"]?.integer { try hold("it is valid already", notBefore <= now + 120) }
    }

    private static func checkForgeries(of token: [UInt8], _ expected: IDTokenExpectations) throws {
        let keys = try issuer.keys()
        for index in stride(from: 0, to: token.count, by: max(1, token.count / 8)) {
            var forged = token
            forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let believed = try? IDToken.verify(Secret(bytes: forged), keys: keys, expecting: expected)
            try hold("no change is believed", believed == nil)
        }
        let stranger = try JSONWebKeySet(json: ["keys": []])
        let believed = try? IDToken.verify(Secret(bytes: token), keys: stranger, expecting: expected)
        try hold("without a key it is nobody's", believed == nil)
    }
}
