internal import Cryptography
internal import Encodings
internal import StrictJSON

/// What a project signs access tokens with: a shared secret, or a key whose public half it publishes.
struct SupabaseKeys {
    private struct Key {
        let id: String
        let key: PrivateKey
        let algorithm: SupabaseSettings.Algorithm
    }

    private let secret = RandomToken.bytes(32)
    private var current: Key?
    private var former: [Key] = []

    mutating func rotate(keepsPublished: Bool) {
        former = keepsPublished ? former + [current].compactMap(\.self) : []
        current = nil
    }

    mutating func sign(
        _ claims: JSONObject, with algorithm: SupabaseSettings.Algorithm
    ) throws(SupabaseErrorResponse) -> String {
        guard algorithm != .hs256 else {
            let input = JSONWebToken.signingInput(["alg": "HS256", "typ": "JWT"], .object(claims))
            return input + "." + Base64URL.encode(HMAC.sha256(Array(input.utf8), key: secret))
        }
        guard let key = currentKey(for: algorithm), let kind = algorithm.signature else { throw .failure }
        let header: JSON = ["alg": .string(algorithm.rawValue), "kid": .string(key.id), "typ": "JWT"]
        let input = JSONWebToken.signingInput(header, .object(claims))
        guard let signature = try? key.key.sign(message: Array(input.utf8), algorithm: kind) else { throw .failure }
        return input + "." + Base64URL.encode(signature)
    }

    /// Signs in the project's place. The published keys do not verify the signature.
    static func forge(
        _ claims: JSONObject, by forgery: SupabaseSettings.Forgery
    ) throws(SupabaseErrorResponse) -> String {
        var keys = SupabaseKeys()
        guard forgery == .nameless else { return try keys.sign(claims, with: forgery == .key ? .es256 : .hs256) }
        guard let key = try? PrivateKey.generate(.p256) else { throw .failure }
        let input = JSONWebToken.signingInput(["alg": "ES256", "typ": "JWT"], .object(claims))
        guard let signature = try? key.sign(message: Array(input.utf8), algorithm: .es256) else { throw .failure }
        return input + "." + Base64URL.encode(signature)
    }

    /// The present key. If the algorithm has changed, the last key stays published.
    private mutating func currentKey(for algorithm: SupabaseSettings.Algorithm) -> Key? {
        if let current, current.algorithm != algorithm { rotate(keepsPublished: true) }
        if current == nil, let family = algorithm.family, let key = try? PrivateKey.generate(family) {
            current = Key(id: SupabaseText.uuid(), key: key, algorithm: algorithm)
        }
        return current
    }

    /// The claims of an access token that is valid now.
    func claims(of token: String, at now: Int) throws(SupabaseErrorResponse) -> JSONObject {
        let prefix = "invalid JWT: unable to parse or verify signature, "
        guard token.count(where: { $0 == "." }) == 2 else {
            throw SupabaseErrorResponse(
                403, "bad_jwt", prefix + "token is malformed: token contains an invalid number of segments")
        }
        guard let token = JSONWebToken(parsing: token) else {
            throw SupabaseErrorResponse(403, "bad_jwt", prefix + "token is malformed: could not decode its parts")
        }
        guard isSigned(token) else {
            throw SupabaseErrorResponse(403, "bad_jwt", prefix + "token signature is invalid: signature is invalid")
        }
        guard let expiry = token.claims["exp"]?.integer, now < expiry else {
            throw SupabaseErrorResponse(403, "bad_jwt", prefix + "token has invalid claims: token is expired")
        }
        return token.claims
    }

    private func isSigned(_ token: JSONWebToken) -> Bool {
        let header = token.header
        if header["alg"] == "HS256" { return token.signature == HMAC.sha256(token.message, key: secret) }
        let keys = ([current].compactMap(\.self) + former).filter {
            $0.id == header["kid"]?.string && $0.algorithm.rawValue == header["alg"]?.string
        }
        return keys.contains { key in
            key.algorithm.signature.map { token.isSigned(by: key.key.publicKey, $0) } ?? false
        }
    }

    /// The key set. A shared secret is not published.
    mutating func published(for algorithm: SupabaseSettings.Algorithm) -> JSON {
        guard algorithm != .hs256, let current = currentKey(for: algorithm) else { return ["keys": []] }
        return ["keys": .array(([current] + former).map(SupabaseKeys.webKey))]
    }

    /// RFC 7518 section 6, RFC 8037 section 2.
    private static func webKey(_ key: Key) -> JSON {
        let encode = { (bytes: [UInt8]) in JSON.string(Base64URL.encode(bytes)) }
        var members = JSONObject([
            .init("alg", .string(key.algorithm.rawValue)), .init("ext", true), .init("key_ops", ["verify"]),
            .init("kid", .string(key.id)), .init("use", "sig"),
        ])
        switch key.key.publicKey.parts {
        case .ellipticCurve(let curve, let x, let y):
            members["kty"] = "EC"
            members["crv"] = .string(curve.rawValue)
            members["x"] = encode(x)
            members["y"] = encode(y)
        case .rsa(let modulus, let exponent):
            members["kty"] = "RSA"
            members["n"] = encode(modulus)
            members["e"] = encode(exponent)
        case .ed25519(let bytes):
            members["kty"] = "OKP"
            members["crv"] = "Ed25519"
            members["x"] = encode(bytes)
        }
        return .object(members)
    }
}

extension SupabaseSettings.Algorithm {
    /// Nil for the shared secret.
    fileprivate var signature: SignatureAlgorithm? {
        switch self {
        case .hs256: nil
        case .es256: .es256
        case .rs256: .rs256
        case .edDSA: .edDSA
        }
    }

    fileprivate var family: PrivateKey.Family? {
        switch self {
        case .hs256: nil
        case .es256: .p256
        case .rs256: .rsa2048
        case .edDSA: .ed25519
        }
    }
}
