internal import Cryptography
internal import Encodings
internal import Secrets
internal import StrictJSON

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
