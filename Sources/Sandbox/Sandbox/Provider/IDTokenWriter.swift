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

    func write(
        keys: inout SigningKeys, perturbations: inout Perturbations
    ) throws(CryptographyError) -> String {
        if perturbations.take(.idTokenNewKey) { keys.rotate(keepsPublished: false) }
        let algorithm = perturbations.take(.idTokenOtherAlgorithm) ? otherAlgorithm : settings.algorithm
        let key = try keys.key(for: algorithm)
        var header: JSONObject = JSONObject([.init("alg", .string(algorithm.rawValue)), .init("typ", "JWT")])
        if !settings.omitsKeyIDs { header["kid"] = .string(key.id) }
        var claims = honestClaims(algorithm)
        perturbations.change(idTokenHeader: &header)
        perturbations.change(idTokenClaims: &claims)

        let input = encode(.object(header)) + "." + encode(.object(claims))
        let message = Array(input.utf8)
        var signature: [UInt8]
        switch header["alg"]?.string {
        case "none": signature = []
        case "HS256": signature = HMAC.sha256(message, key: client.secret?.revealedBytes() ?? [])
        default: signature = try key.key.sign(message: message, algorithm: algorithm.signatureAlgorithm)
        }
        if perturbations.take(.idTokenWrongSignature), !signature.isEmpty { signature[signature.count / 2] ^= 1 }
        return input + "." + Base64URL.encode(signature)
    }

    private func honestClaims(_ algorithm: SandboxAlgorithm) -> JSONObject {
        var claims = JSONObject([
            .init("iss", .string(issuer)), .init("sub", .string(user.subject)), .init("aud", .string(client.id)),
            .init("exp", .integer(now + settings.idTokenLifetime)), .init("iat", .integer(now)),
            .init("auth_time", .integer(family.authenticatedAt)), .init("sid", .string(family.sessionID)),
        ])
        if let nonce { claims["nonce"] = .string(nonce) }
        if let accessToken { claims["at_hash"] = .string(IDTokenWriter.hash(accessToken, algorithm)) }
        return claims
    }

    /// The left half of the digest that belongs to the algorithm (section 3.1.3.6); Ed25519's is SHA-512.
    static func hash(_ token: String, _ algorithm: SandboxAlgorithm) -> String {
        let digest = algorithm == .edDSA ? Digest.sha512(token) : Digest.sha256(token)
        return Base64URL.encode(digest.prefix(digest.count / 2))
    }

    /// An algorithm that the metadata does not list, with a key that the key set contains.
    private var otherAlgorithm: SandboxAlgorithm { settings.algorithm == .es256 ? .edDSA : .es256 }

    private func encode(_ value: JSON) -> String { Base64URL.encode(value.serialized()) }
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

/// RFC 2104 with SHA-256, for tokens that only a perturbation signs with it.
enum HMAC {
    static func sha256(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        let short = key.count > 64 ? Digest.sha256(key) : key
        let padded = short + [UInt8](repeating: 0, count: 64 - short.count)
        return Digest.sha256(padded.map { $0 ^ 0x5C } + Digest.sha256(padded.map { $0 ^ 0x36 } + message))
    }
}

/// A signed JWT in its compact form (RFC 7515 section 7.1), taken apart. Its signature is checked elsewhere.
struct JSONWebToken {
    let header: JSONObject
    let claims: JSONObject
    let signature: [UInt8]
    /// What was signed.
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

    /// Nil for one that is not known here.
    var algorithm: SignatureAlgorithm? { header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)) }

    func isSigned(by key: PublicKey, _ algorithm: SignatureAlgorithm) -> Bool {
        key.verify(signature: signature, message: message, algorithm: algorithm)
    }

    /// Header and claims as they are signed.
    static func signingInput(_ header: JSON, _ claims: JSON) -> String {
        Base64URL.encode(header.serialized()) + "." + Base64URL.encode(claims.serialized())
    }

    private static func object(_ part: Substring) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0) }?.object
    }
}

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
