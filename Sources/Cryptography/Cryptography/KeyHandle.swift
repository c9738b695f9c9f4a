internal import COpenSSL
internal import Secrets

/// Owns one EVP_PKEY, public or private. The key is immutable and libcrypto locks its internal caches, so threads may
/// share it.
@safe final class KeyHandle: @unchecked Sendable {
    private let key: OpaquePointer

    /// Takes ownership of a key.
    init(owning key: OpaquePointer) {
        unsafe self.key = unsafe key
    }

    deinit {
        unsafe EVP_PKEY_free(key)
    }

    /// The public key of a SubjectPublicKeyInfo (RFC 5280 section 4.1), or nil if libcrypto cannot read it.
    convenience init?(subjectPublicKeyInfo bytes: [UInt8]) {
        let key = unsafe bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return unsafe d2i_PUBKEY(nil, &next, buffer.count)
        }
        guard let key = unsafe key else {
            ERR_clear_error()
            return nil
        }
        unsafe self.init(owning: key)
    }

    /// The private key of an unencrypted PKCS #8, PKCS #1 or SEC 1 structure, or nil if libcrypto cannot read it.
    convenience init?(privateKey bytes: [UInt8]) {
        let key = unsafe bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &next, buffer.count)
        }
        ERR_clear_error()
        guard let key = unsafe key else { return nil }
        unsafe self.init(owning: key)
    }

    /// True if the key is of this type by libcrypto's name: `RSA`, `EC`, `ED25519`.
    func isType(_ name: String) -> Bool { unsafe EVP_PKEY_is_a(key, name) == 1 }

    /// libcrypto's name of the key's curve.
    func groupName() -> String? {
        defer { ERR_clear_error() }
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, count < name.count else {
            return nil
        }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// True if the point is on its curve and not at infinity.
    func hasValidPoint() -> Bool {
        guard let context = unsafe EVP_PKEY_CTX_new(key, nil) else { return false }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        let isValid = unsafe EVP_PKEY_public_check(context) == 1
        ERR_clear_error()
        return isValid
    }

    func verify(signature: [UInt8], message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        // libcrypto has an error queue for each thread. Errors that stay in it would be reported for a later operation.
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        guard unsafe EVP_DigestVerifyInit_ex(context, &options, algorithm.digestName, nil, nil, key, nil) == 1,
            unsafe KeyHandle.setPadding(options, algorithm)
        else { return false }
        return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// The signature in libcrypto's form: DER for ECDSA.
    func sign(message: [UInt8], algorithm: SignatureAlgorithm) throws(CryptographyError) -> [UInt8] {
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_MD_CTX_new() else { throw .failed(operation: "sign") }
        defer { unsafe EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        var signature = [UInt8](repeating: 0, count: max(0, Int(unsafe EVP_PKEY_get_size(key))))
        var count = signature.count
        guard unsafe EVP_DigestSignInit_ex(context, &options, algorithm.digestName, nil, nil, key, nil) == 1,
            unsafe KeyHandle.setPadding(options, algorithm),
            unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1,
            count <= signature.count
        else { throw .failed(operation: "sign") }
        return Array(signature.prefix(count))
    }

    /// For PSS: a salt as long as the digest, and MGF1 over the same digest (RFC 7518 section 3.5).
    private static func setPadding(_ options: OpaquePointer?, _ algorithm: SignatureAlgorithm) -> Bool {
        guard algorithm.scheme == .rsaPSS else { return true }
        return unsafe EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1
            && EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1
    }

    /// One of the key's numbers, big-endian, padded to `length` bytes, or without leading zeros.
    func number(_ name: String, length: Int? = nil) throws(CryptographyError) -> [UInt8] {
        defer { ERR_clear_error() }
        var number: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(key, name, &number) == 1, let number = unsafe number else {
            throw .failed(operation: "read a key")
        }
        defer { unsafe BN_clear_free(number) }
        let size = length ?? (Int(unsafe BN_num_bits(number)) + 7) / 8
        var bytes = [UInt8](repeating: 0, count: size)
        guard unsafe BN_bn2binpad(number, &bytes, Int32(size)) == Int32(size) else {
            throw .failed(operation: "read a key")
        }
        return bytes
    }

    /// The secret of this X25519 key and a public one (RFC 7748 section 6.1); nil if the public one yields zero.
    func agree(withX25519 publicKey: [UInt8]) -> Secret? {
        defer { ERR_clear_error() }
        guard
            let peer = unsafe EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, publicKey, publicKey.count)
        else { return nil }
        defer { unsafe EVP_PKEY_free(peer) }
        guard let context = unsafe EVP_PKEY_CTX_new(key, nil) else { return nil }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var bytes = [UInt8](repeating: 0, count: 32)
        defer { bytes.erase() }
        var count = bytes.count
        guard unsafe EVP_PKEY_derive_init(context) == 1, unsafe EVP_PKEY_derive_set_peer(context, peer) == 1,
            unsafe EVP_PKEY_derive(context, &bytes, &count) == 1, count == bytes.count
        else { return nil }
        return Secret(bytes: bytes)
    }

    /// The public key of an Ed25519 or X25519 key.
    func rawPublicKey() throws(CryptographyError) -> [UInt8] {
        defer { ERR_clear_error() }
        var bytes = [UInt8](repeating: 0, count: PublicKey.ed25519Length)
        var count = bytes.count
        guard unsafe EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else {
            throw .failed(operation: "read a key")
        }
        return bytes
    }
}
