internal import Cryptography
public import RingbackBase

/// A P-256 key to which a server binds tokens (RFC 9449). Who holds such a token without the key cannot use it.
public struct DPoPKey: Sendable, Equatable {
    /// The private and the public part as text, for storing the key.
    public let stored: Secret
    /// RFC 7638, in base64url: `jkt`, and `dpop_jkt` of an authorization request.
    public let thumbprint: String
    private let key: PrivateKey
    private let jwk: JSONObject

    /// Makes a new key. Throws `.misconfigured` only if libcrypto fails.
    public init() throws(OAuthError) {
        guard let key = try? PrivateKey.generate(.p256), let made = DPoPKey(key) else {
            throw .misconfigured(reason: "libcrypto made no key for DPoP")
        }
        self = made
    }

    /// Reads what ``stored`` gave; nil for other text.
    public init?(stored: Secret) {
        guard var bytes = Base64URL.decode(stored.revealedBytes()[...]), bytes.count == 3 * DPoPKey.length else {
            return nil
        }
        defer { bytes.erase() }
        let number = Secret(bytes: bytes.prefix(DPoPKey.length))
        let x = Array(bytes[DPoPKey.length..<(2 * DPoPKey.length)])
        guard let open = try? PublicKey(curve: .p256, x: x, y: Array(bytes.suffix(DPoPKey.length))),
            let key = try? PrivateKey(open, numbers: [number])
        else { return nil }
        self.init(key)
    }

    /// Of each number of the key, in bytes.
    private static let length = 32

    private init?(_ key: PrivateKey) {
        guard case .ellipticCurve(.p256, let x, let y) = key.publicKey.parts, let number = try? key.privateNumber()
        else { return nil }
        var bytes = number.revealedBytes() + x + y
        var text = Base64URL.encodeToBytes(bytes)
        defer {
            bytes.erase()
            text.erase()
        }
        stored = Secret(bytes: text)
        self.key = key
        // The members, and no others, in the order of RFC 7638 section 3.
        jwk = JSONObject([
            .init("crv", "P-256"), .init("kty", "EC"), .init("x", .string(Base64URL.encode(x))),
            .init("y", .string(Base64URL.encode(y))),
        ])
        thumbprint = DPoPKey.thumbprint(of: jwk)
    }

    static func thumbprint(of jwk: JSONObject) -> String { Base64URL.encode(Digest.sha256(JSON.object(jwk).text)) }

    /// The value of the field `DPoP` for one request (RFC 9449 section 4.2), which a server accepts once. `now` in Unix
    /// seconds by the server's clock; `accessToken` is the token that the request carries; `nonce` is the server's last
    /// one. Nil for a URL that is not http or https, and if libcrypto fails.
    public func proof(
        of method: String, to url: String, accessToken: Secret? = nil, nonce: String? = nil, now: Int
    ) -> Secret? {
        guard let target = try? WebURL(parsing: url), ["http", "https"].contains(target.scheme) else { return nil }
        let header: JSONObject = ["alg": "ES256", "typ": "dpop+jwt", "jwk": jwk]
        let claims: JSONObject = [
            "jti": RandomToken.identifier(bits: 128), "htm": method,
            "htu": target.origin + (target.path.isEmpty ? "/" : target.path), "iat": now,
            "ath": accessToken.map { Base64URL.encode(Digest.sha256($0)) }, "nonce": nonce,
        ]
        let signed = [header, claims].map { Base64URL.encode(JSON.object($0).text.utf8) }.joined(separator: ".")
        guard let signature = try? key.sign(message: Array(signed.utf8), algorithm: .es256) else { return nil }
        return Secret("\(signed).\(Base64URL.encode(signature))")
    }

    public static func == (left: DPoPKey, right: DPoPKey) -> Bool { left.stored == right.stored }
}

extension HTTPRequest {
    /// Adds the field `DPoP`.
    public mutating func prove(by proof: Secret) { secretFields.append(("DPoP", proof)) }
}
