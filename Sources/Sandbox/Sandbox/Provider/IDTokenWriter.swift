internal import Cryptography
internal import RingbackBase

/// Writes ID tokens (OpenID Connect Core section 2) and signs them (RFC 7515), correctly or as a perturbation asks.
struct IDTokenWriter {
    let issuer: String
    let client: SandboxClient
    let family: Ledger.Family
    let user: SandboxUser
    let nonce: String?
    let accessToken: String?
    let settings: SandboxSettings
    let now: Int

    func write(keys: inout SigningKeys, perturbations: inout Perturbations) throws -> String {
        if perturbations.take(.idTokenNewKey) { keys.rotate(keepsPublished: false) }
        let algorithm = perturbations.take(.idTokenOtherAlgorithm) ? otherAlgorithm : settings.algorithm
        let key = try keys.key(for: algorithm)
        var header: JSONObject = ["alg": algorithm.rawValue, "typ": "JWT", "kid": settings.omitsKeyIDs ? nil : key.id]
        var claims = honestClaims(algorithm)
        perturbations.change(.idTokenHeader, &header)
        perturbations.change(.idTokenClaims, &claims)
        return try JSONWebToken.signed(header, claims) { message in
            var signature: [UInt8]
            switch header["alg"]?.string {
            case "none": signature = []
            case "HS256": signature = HMAC.sha256(message, key: client.secret?.revealedBytes() ?? [])
            default: signature = try key.key.sign(message: message, algorithm: algorithm.signatureAlgorithm)
            }
            if perturbations.take(.idTokenWrongSignature), !signature.isEmpty { signature[signature.count / 2] ^= 1 }
            return signature
        }
    }

    private func honestClaims(_ algorithm: SandboxAlgorithm) -> JSONObject {
        [
            "iss": issuer, "sub": user.subject, "aud": client.id, "exp": now + settings.idTokenLifetime, "iat": now,
            "auth_time": family.authenticatedAt, "sid": family.sessionID, "nonce": nonce,
            "at_hash": accessToken.map { IDTokenWriter.hash($0, algorithm) },
        ] as JSONObject
    }

    /// The left half of the digest that belongs to the algorithm (section 3.1.3.6); Ed25519's is SHA-512.
    static func hash(_ token: String, _ algorithm: SandboxAlgorithm) -> String {
        let digest = algorithm == .edDSA ? Digest.sha512(token) : Digest.sha256(token)
        return Base64URL.encode(digest.prefix(digest.count / 2))
    }

    /// An algorithm that the metadata does not list, with a key that the key set contains.
    private var otherAlgorithm: SandboxAlgorithm { settings.algorithm == .es256 ? .edDSA : .es256 }
}

extension SandboxAlgorithm {
    fileprivate var signatureAlgorithm: SignatureAlgorithm {
        switch self {
        case .rs256: .rs256
        case .ps256: .ps256
        case .es256: .es256
        case .edDSA: .edDSA
        }
    }
}

extension SignatureAlgorithm {
    var family: PrivateKey.Family {
        switch self {
        case .es256: .p256
        case .edDSA: .ed25519
        default: .rsa2048
        }
    }
}

/// RFC 2104.
enum HMAC {
    static func sha256(_ message: [UInt8], key: [UInt8]) -> [UInt8] { code(message, key) { Digest.sha256($0) } }

    /// For a digest with blocks of 64 bytes.
    static func code(_ message: [UInt8], _ key: [UInt8], _ digest: ([UInt8]) -> [UInt8]) -> [UInt8] {
        let short = key.count > 64 ? digest(key) : key
        let padded = short + [UInt8](repeating: 0, count: 64 - short.count)
        return digest(padded.map { $0 ^ 0x5C } + digest(padded.map { $0 ^ 0x36 } + message))
    }
}

/// A signed JWT in its compact form (RFC 7515 section 7.1), taken apart. Its signature is checked elsewhere.
struct JSONWebToken {
    let header: JSONObject
    let claims: JSONObject
    let signature: [UInt8]
    let message: [UInt8]

    /// Nil for anything but three parts, of which the first two are objects.
    init?(parsing text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = JSONWebToken.object(parts[0]), let claims = JSONWebToken.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        message = Array("\(parts[0]).\(parts[1])".utf8)
    }

    var algorithm: SignatureAlgorithm? { header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)) }

    func isSigned(by key: PublicKey, _ algorithm: SignatureAlgorithm?) -> Bool {
        algorithm.map { key.verify(signature: signature, message: message, algorithm: $0) } ?? false
    }

    static func signed(
        _ header: JSONObject, _ claims: JSONObject, by sign: ([UInt8]) throws -> [UInt8]
    ) rethrows -> String {
        let input = [header, claims].map { Base64URL.encode($0.jsonValue.serialized()) }.joined(separator: ".")
        return try "\(input).\(Base64URL.encode(sign(Array(input.utf8))))"
    }

    private static func object(_ part: Substring) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0) }?.object
    }
}

/// An issuer's signing keys and the key set it publishes, which always contains keys that a careful client ignores: for
/// encryption, on an uncommon curve, of an unknown type. Nobody has a private key of any of them.
struct SigningKeys {
    struct Key {
        let id: String
        let key: PrivateKey
    }

    /// In the order in which they are published, with the beginnings of their ids.
    private static let kinds: [(family: PrivateKey.Family, name: String)] = [
        (.rsa2048, "rsa"), (.p256, "ec"), (.ed25519, "okp"),
    ]
    private var current: [PrivateKey.Family: Key] = [:]
    /// Still published, but no longer used.
    private var former: [Key] = []
    private var generation = 1
    private let decoys: [JSONObject] = SigningKeys.makeDecoys()

    /// The key that signs with the algorithm now. It is made when it is first needed, since an RSA key takes time.
    mutating func key(for algorithm: SandboxAlgorithm) throws -> Key {
        let family = algorithm.signatureAlgorithm.family
        if let key = current[family] { return key }
        let name = SigningKeys.kinds.first { $0.family == family }?.name ?? ""
        let key = Key(id: "\(name)-\(generation)", key: try .generate(family))
        current[family] = key
        return key
    }

    /// True for a token by one of the keys that are published.
    func haveSigned(_ token: JSONWebToken) -> Bool {
        (former + current.values).contains { token.isSigned(by: $0.key.publicKey, token.algorithm) }
    }

    /// Signs with new keys from now on. The old ones stay published, or are removed at once.
    mutating func rotate(keepsPublished: Bool) {
        former = keepsPublished ? former + current.values.sorted { $0.id < $1.id } : []
        current = [:]
        generation += 1
    }

    /// The key set (RFC 7517): a key of each cheap kind, the algorithm's own, former ones, and the decoys first.
    mutating func published(for algorithm: SandboxAlgorithm, omitsIDs: Bool) throws -> JSONObject {
        for needed in [algorithm, .es256, .edDSA] { _ = try key(for: needed) }
        let ours = (former + SigningKeys.kinds.compactMap { current[$0.family] }).map { key in
            // RSA keys name no `alg`: they sign with RS256 and PS256.
            let algorithms: [String: JSON] = ["EC": "ES256", "OKP": "EdDSA"]
            var members = key.key.publicKey.webKey
            members["use"] = "sig"
            members["kid"] = .string(key.id)
            members["alg"] = algorithms[members["kty"]?.string ?? ""]
            return members
        }
        var keys = decoys + ours
        if omitsIDs { for index in keys.indices { keys[index]["kid"] = nil } }
        return ["keys": keys] as JSONObject
    }

    private static func makeDecoys() -> [JSONObject] {
        func random(_ count: Int) -> String { Base64URL.encode(RandomToken.bytes(count)) }
        var modulus = RandomToken.bytes(256)
        modulus[0] |= 0x80
        modulus[255] |= 1
        return [
            [
                "kty": "RSA", "use": "enc", "kid": "encryption", "alg": "RSA-OAEP", "n": Base64URL.encode(modulus),
                "e": "AQAB",
            ],
            ["kty": "EC", "use": "sig", "kid": "koblitz", "crv": "secp256k1", "x": random(32), "y": random(32)],
            ["kty": "AKP", "use": "sig", "kid": "lattice", "alg": "ML-DSA-44", "pub": random(64)],
        ]
    }
}

extension PublicKey {
    /// The members of a JSON Web Key that hold the key itself (RFC 7518 section 6, RFC 8037 section 2).
    var webKey: JSONObject {
        switch parts {
        case .rsa(let modulus, let exponent):
            ["kty": "RSA", "n": Base64URL.encode(modulus), "e": Base64URL.encode(exponent)] as JSONObject
        case .ellipticCurve(let curve, let x, let y):
            ["kty": "EC", "crv": curve.rawValue, "x": Base64URL.encode(x), "y": Base64URL.encode(y)] as JSONObject
        case .ed25519(let bytes): ["kty": "OKP", "crv": "Ed25519", "x": Base64URL.encode(bytes)] as JSONObject
        }
    }
}
