internal import COpenSSL

/// A key that signs. It is made here and stays here: there is no way to read its private half, and libcrypto erases it
/// when the last copy goes.
public struct PrivateKey: Sendable {
    /// What kind of key to make.
    public enum Family: Sendable, CaseIterable {
        case rsa2048, p256, p384, p521, ed25519
    }

    /// The half to publish.
    public let publicKey: PublicKey
    private let handle: KeyHandle

    /// Makes a new key. RSA takes up to some hundred milliseconds of processor time, the others far less than one.
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
