internal import Cryptography
internal import Encodings
internal import StrictJSON

/// An issuer's signing keys and the key set it publishes.
///
/// The set always contains keys that a careful client ignores: one for encryption, one on an uncommon curve, one of an
/// unknown type. Nobody has a private key of any of them.
struct SigningKeys {
    struct Key {
        let id: String
        let key: PrivateKey
    }

    private enum Kind: String, CaseIterable {
        case rsa, ec, okp

        init(_ algorithm: SandboxAlgorithm) {
            switch algorithm {
            case .rs256, .ps256: self = .rsa
            case .es256: self = .ec
            case .edDSA: self = .okp
            }
        }

        var family: PrivateKey.Family {
            switch self {
            case .rsa: .rsa2048
            case .ec: .p256
            case .okp: .ed25519
            }
        }
    }

    private var current: [Kind: Key] = [:]
    /// Still published, but no longer used.
    private var former: [Key] = []
    private var generation = 1
    private let decoys: [JSON] = SigningKeys.makeDecoys()

    /// The key that signs with the algorithm now. It is made when it is first needed, since an RSA key takes time.
    mutating func key(for algorithm: SandboxAlgorithm) throws(CryptographyError) -> Key {
        let kind = Kind(algorithm)
        if let key = current[kind] { return key }
        let key = Key(id: "\(kind.rawValue)-\(generation)", key: try .generate(kind.family))
        current[kind] = key
        return key
    }

    /// Signs with new keys from now on. The old ones stay published, or are removed at once.
    mutating func rotate(keepsPublished: Bool) {
        former = keepsPublished ? former + current.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value) : []
        current = [:]
        generation += 1
    }

    /// The key set (RFC 7517): a key of each cheap kind, the algorithm's own, former ones, and the decoys first.
    mutating func published(
        for algorithm: SandboxAlgorithm, omitsIDs: Bool
    ) throws(CryptographyError) -> JSON {
        for needed in [algorithm, .es256, .edDSA] { _ = try key(for: needed) }
        let ours = former + Kind.allCases.compactMap { current[$0] }
        let keys = (decoys + ours.map(SigningKeys.webKey)).map { key in
            var members = key.object ?? JSONObject()
            if omitsIDs { members["kid"] = nil }
            return JSON.object(members)
        }
        return ["keys": .array(keys)]
    }

    /// RFC 7518 section 6, RFC 8037 section 2. RSA keys name no `alg`: they sign with RS256 and PS256.
    private static func webKey(_ key: Key) -> JSON {
        let encode = { (bytes: [UInt8]) in JSON.string(Base64URL.encode(bytes)) }
        switch key.key.publicKey.parts {
        case .rsa(let modulus, let exponent):
            return ["kty": "RSA", "use": "sig", "kid": .string(key.id), "n": encode(modulus), "e": encode(exponent)]
        case .ellipticCurve(let curve, let x, let y):
            return [
                "kty": "EC", "use": "sig", "alg": "ES256", "kid": .string(key.id), "crv": .string(curve.rawValue),
                "x": encode(x), "y": encode(y),
            ]
        case .ed25519(let bytes):
            return [
                "kty": "OKP", "use": "sig", "alg": "EdDSA", "kid": .string(key.id), "crv": "Ed25519",
                "x": encode(bytes),
            ]
        }
    }

    private static func makeDecoys() -> [JSON] {
        let random = { (count: Int) in JSON.string(Base64URL.encode(RandomToken.bytes(count))) }
        var modulus = RandomToken.bytes(256)
        modulus[0] |= 0x80
        modulus[255] |= 1
        return [
            [
                "kty": "RSA", "use": "enc", "kid": "encryption", "alg": "RSA-OAEP",
                "n": .string(Base64URL.encode(modulus)), "e": "AQAB",
            ],
            ["kty": "EC", "use": "sig", "kid": "koblitz", "crv": "secp256k1", "x": random(32), "y": random(32)],
            ["kty": "AKP", "use": "sig", "kid": "lattice", "alg": "ML-DSA-44", "pub": random(64)],
        ]
    }
}
