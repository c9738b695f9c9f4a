internal import COpenSSL

/// A private key for signing. Its private part cannot be read, and libcrypto erases it when the last copy is released.
public struct PrivateKey: Sendable {
    /// The kind of a new key.
    public enum Family: Sendable, CaseIterable {
        case rsa2048, p256, p384, p521, ed25519
    }

    /// The public key that belongs to it.
    public let publicKey: PublicKey
    private let handle: KeyHandle

    /// Uses a key that libcrypto has read. Throws `invalidKey` for types, sizes and curves that are not supported, and
    /// if the private part does not match the public one: otherwise the mistake would appear only when a provider
    /// rejects a signature.
    init(reading handle: KeyHandle) throws(CryptographyError) {
        if handle.isType("RSA") {
            publicKey = try PublicKey(
                rsaModulus: handle.number(OSSL_PKEY_PARAM_RSA_N), exponent: handle.number(OSSL_PKEY_PARAM_RSA_E))
        } else if handle.isType("ED25519") {
            publicKey = try PublicKey(ed25519: handle.rawPublicKey())
        } else if handle.isType("EC"), let name = handle.groupName(), let curve = EllipticCurve(libraryName: name) {
            publicKey = try PrivateKey.point(of: handle, on: curve)
        } else {
            throw .invalidKey(reason: "its type is not RSA, P-256, P-384, P-521 or Ed25519")
        }
        self.handle = handle
        let probe = Array("probe".utf8)
        guard let algorithm = SignatureAlgorithm.allCases.first(where: publicKey.fits),
            let signature = try? sign(message: probe, algorithm: algorithm),
            publicKey.verify(signature: signature, message: probe, algorithm: algorithm)
        else { throw .invalidKey(reason: "its private and public parts do not belong together") }
    }

    private init(publicKey: PublicKey, handle: KeyHandle) {
        self.publicKey = publicKey
        self.handle = handle
    }

    /// Makes a new key. An RSA key takes up to some hundred milliseconds of processor time, other keys take less than
    /// one millisecond. Throws `failed` if libcrypto fails.
    public static func generate(_ family: Family) throws(CryptographyError) -> PrivateKey {
        let handle = try makeHandle(family)
        let publicKey: PublicKey =
            switch family {
            case .rsa2048:
                try PublicKey(
                    rsaModulus: handle.number(OSSL_PKEY_PARAM_RSA_N), exponent: handle.number(OSSL_PKEY_PARAM_RSA_E))
            case .p256: try point(of: handle, on: .p256)
            case .p384: try point(of: handle, on: .p384)
            case .p521: try point(of: handle, on: .p521)
            case .ed25519: try PublicKey(ed25519: handle.rawPublicKey())
            }
        return PrivateKey(publicKey: publicKey, handle: handle)
    }

    /// The signature in JOSE's form (RFC 7518 section 3), see ``PublicKey/verify(signature:message:algorithm:)``.
    /// Throws ``CryptographyError/algorithmMismatch`` for an algorithm of another key type or curve.
    public func sign(message: [UInt8], algorithm: SignatureAlgorithm) throws(CryptographyError) -> [UInt8] {
        guard publicKey.fits(algorithm) else { throw .algorithmMismatch }
        let signature = try handle.sign(message: message, algorithm: algorithm)
        guard case .ecdsa(let curve) = algorithm.scheme else { return signature }
        guard let halves = DER.signatureHalves(signature, length: curve.coordinateLength) else {
            throw .failed(operation: "sign")
        }
        return halves
    }

    private static func point(
        of handle: KeyHandle, on curve: EllipticCurve
    ) throws(CryptographyError) -> PublicKey {
        let length = curve.coordinateLength
        return try PublicKey(
            curve: curve,
            x: handle.number(OSSL_PKEY_PARAM_EC_PUB_X, length: length),
            y: handle.number(OSSL_PKEY_PARAM_EC_PUB_Y, length: length)
        )
    }

    private static func makeHandle(_ family: Family) throws(CryptographyError) -> KeyHandle {
        defer { ERR_clear_error() }
        let type =
            switch family {
            case .rsa2048: "RSA"
            case .p256, .p384, .p521: "EC"
            case .ed25519: "ED25519"
            }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, type, nil) else {
            throw .failed(operation: "make a key")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_keygen_init(context) == 1 else { throw .failed(operation: "make a key") }
        let status =
            switch family {
            case .rsa2048: unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048)
            case .p256: unsafe EVP_PKEY_CTX_set_group_name(context, EllipticCurve.p256.rawValue)
            case .p384: unsafe EVP_PKEY_CTX_set_group_name(context, EllipticCurve.p384.rawValue)
            case .p521: unsafe EVP_PKEY_CTX_set_group_name(context, EllipticCurve.p521.rawValue)
            case .ed25519: Int32(1)
            }
        var key: OpaquePointer?
        guard status == 1, unsafe EVP_PKEY_generate(context, &key) == 1, let key = unsafe key else {
            throw .failed(operation: "make a key")
        }
        return unsafe KeyHandle(owning: key)
    }
}

extension EllipticCurve {
    /// The curve with this name. libcrypto has two names for each curve, and both are accepted.
    init?(libraryName: String) {
        switch libraryName {
        case "prime256v1", "P-256": self = .p256
        case "secp384r1", "P-384": self = .p384
        case "secp521r1", "P-521": self = .p521
        default: return nil
        }
    }
}
