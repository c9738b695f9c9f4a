internal import Cryptography
internal import StrictJSON

/// What a project signs access tokens with: a shared secret, or a key whose public half it publishes.
struct SupabaseKeys {
    private struct Key {
        let id: String
        let key: PrivateKey
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
    ) throws(SupabaseRefusal) -> String {
        switch algorithm {
        case .hs256:
            let input = SupabaseKeys.input(["alg": "HS256", "typ": "JWT"], claims)
            return input + "." + Base64URL.encode(HMAC.sha256(Array(input.utf8), key: secret))
        case .es256:
            guard let key = currentKey() else { throw .failure }
            let input = SupabaseKeys.input(["alg": "ES256", "kid": .string(key.id), "typ": "JWT"], claims)
            guard let signature = try? key.key.sign(message: Array(input.utf8), algorithm: .es256) else {
                throw .failure
            }
            return input + "." + Base64URL.encode(signature)
        }
    }

    private static func input(_ header: JSON, _ claims: JSONObject) -> String {
        Base64URL.encode(header.serialized()) + "." + Base64URL.encode(JSON.object(claims).serialized())
    }

    private mutating func currentKey() -> Key? {
        if current == nil, let key = try? PrivateKey.generate(.p256) {
            current = Key(id: SupabaseText.uuid(), key: key)
        }
        return current
    }

    /// The claims of an access token that is good now.
    func claims(of token: String, at now: Int) throws(SupabaseRefusal) -> JSONObject {
        let prefix = "invalid JWT: unable to parse or verify signature, "
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw SupabaseRefusal(
                403, "bad_jwt", prefix + "token is malformed: token contains an invalid number of segments")
        }
        guard let header = SupabaseKeys.object(parts[0]), let claims = SupabaseKeys.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw SupabaseRefusal(403, "bad_jwt", prefix + "token is malformed: could not decode its parts") }
        guard isGood(signature, of: Array("\(parts[0]).\(parts[1])".utf8), header) else {
            throw SupabaseRefusal(403, "bad_jwt", prefix + "token signature is invalid: signature is invalid")
        }
        guard let expiry = claims["exp"]?.integer, now < expiry else {
            throw SupabaseRefusal(403, "bad_jwt", prefix + "token has invalid claims: token is expired")
        }
        return claims
    }

    private func isGood(_ signature: [UInt8], of message: [UInt8], _ header: JSONObject) -> Bool {
        switch header["alg"]?.string {
        case "HS256": return signature == HMAC.sha256(message, key: secret)
        case "ES256":
            let keys = ([current].compactMap(\.self) + former).filter { $0.id == header["kid"]?.string }
            return keys.contains {
                $0.key.publicKey.verify(signature: signature, message: message, algorithm: .es256)
            }
        default: return false
        }
    }

    private static func object(_ part: Substring) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0) }?.object
    }

    /// The key set: a shared secret is never shown.
    mutating func published(for algorithm: SupabaseSettings.Algorithm) -> JSON {
        guard algorithm == .es256, let current = currentKey() else { return ["keys": []] }
        return ["keys": .array(([current] + former).compactMap(SupabaseKeys.webKey))]
    }

    private static func webKey(_ key: Key) -> JSON? {
        guard case .ellipticCurve(let curve, let x, let y) = key.key.publicKey.parts else { return nil }
        return [
            "alg": "ES256", "crv": .string(curve.rawValue), "ext": true, "key_ops": ["verify"],
            "kid": .string(key.id), "kty": "EC", "use": "sig", "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)),
        ]
    }
}
