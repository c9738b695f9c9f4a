internal import COpenSSL
public import RingbackBase

/// A private key for signing. libcrypto erases it when the last copy is released.
public struct PrivateKey: Sendable {
    /// The kind of a new key.
    public enum Family: Sendable, CaseIterable {
        case rsa2048, p256, p384, p521, ed25519
    }

    public let publicKey: PublicKey
    private let handle: KeyHandle

    /// Throws `invalidKey` for types, sizes and curves that are not supported, and if the private part does not match
    /// the public one: otherwise the mistake would appear only when a provider rejects a signature.
    init(reading handle: KeyHandle) throws(CryptographyError) {
        if handle.isType("RSA") {
            publicKey = try PublicKey(
                rsaModulus: handle.number(OSSL_PKEY_PARAM_RSA_N), exponent: handle.number(OSSL_PKEY_PARAM_RSA_E))
        } else if handle.isType("ED25519") {
            publicKey = try PublicKey(ed25519: handle.rawPublicKey())
        } else if handle.isType("EC"), let name = handle.groupName(), let curve = EllipticCurve(libraryName: name) {
            let length = curve.coordinateLength
            publicKey = try PublicKey(
                curve: curve, x: handle.number(OSSL_PKEY_PARAM_EC_PUB_X, length: length),
                y: handle.number(OSSL_PKEY_PARAM_EC_PUB_Y, length: length))
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

    /// Makes a new key. An RSA key takes up to some hundred milliseconds of processor time, other keys less than one.
    /// Throws `failed` if libcrypto fails.
    public static func generate(_ family: Family) throws(CryptographyError) -> PrivateKey {
        try PrivateKey(reading: makeHandle(family))
    }

    /// In JOSE's form (RFC 7518 section 3). Throws ``CryptographyError/algorithmMismatch`` for an algorithm of another
    /// key type or curve.
    public func sign(message: [UInt8], algorithm: SignatureAlgorithm) throws(CryptographyError) -> [UInt8] {
        guard publicKey.fits(algorithm) else { throw .algorithmMismatch }
        let signature = try handle.sign(message: message, algorithm: algorithm)
        guard case .ecdsa(let curve) = algorithm.scheme else { return signature }
        guard let halves = DER.signatureHalves(signature, length: curve.coordinateLength) else {
            throw .failed(operation: "sign")
        }
        return halves
    }

    /// `d` of an elliptic curve's key (RFC 7518 section 6.2.2.1), as long as a coordinate, for storing the key. Throws
    /// `failed` for other keys.
    public func privateNumber() throws(CryptographyError) -> Secret {
        guard case .ellipticCurve(let curve, _, _) = publicKey.parts else { throw .failed(operation: "read a key") }
        var bytes = try handle.number(OSSL_PKEY_PARAM_PRIV_KEY, length: curve.coordinateLength)
        defer { bytes.erase() }
        return Secret(bytes: bytes)
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
    /// libcrypto has two names for each curve.
    init?(libraryName: String) {
        switch libraryName {
        case "prime256v1", "P-256": self = .p256
        case "secp384r1", "P-384": self = .p384
        case "secp521r1", "P-521": self = .p521
        default: return nil
        }
    }
}

/// Private keys from files. Encrypted keys are rejected, because the daemon cannot ask for their passphrase.
extension PrivateKey {
    /// In bytes, of one number; the largest is an RSA modulus of 8192 bits.
    private static let maxNumber = 1024

    /// PEM (RFC 7468): PKCS #8, `RSA PRIVATE KEY` or `EC PRIVATE KEY`; other blocks are ignored. Throws `invalidKey` if
    /// there is not exactly one private key, if it is encrypted, or if its type is not supported.
    public init(pem text: Secret) throws(CryptographyError) {
        var blocks: [(label: String, body: [UInt8])] = []
        var label: String?
        var body: [UInt8] = []
        for line in text.revealedBytes().split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if let begun = PrivateKey.label(of: line, "BEGIN") {
                label = begun
                body = []
            } else if let ended = PrivateKey.label(of: line, "END"), ended == label {
                if ended.hasSuffix("PRIVATE KEY") { blocks.append((ended, body)) }
                label = nil
            } else if label != nil {
                body += line.filter { $0 != 0x20 && $0 != 0x09 }
            }
        }
        defer { body.erase() }
        guard let block = blocks.first, blocks.count == 1 else {
            throw .invalidKey(reason: blocks.isEmpty ? "a PEM text without a private key" : "more than one private key")
        }
        guard block.label != "ENCRYPTED PRIVATE KEY", !block.body.contains(UInt8(ascii: ":")) else {
            throw .invalidKey(reason: "it is encrypted: store it without a passphrase in a file with mode 0600")
        }
        guard var bytes = Base64.decode(block.body[...]) else { throw .invalidKey(reason: "not base64") }
        defer { bytes.erase() }
        guard let handle = KeyHandle(privateKey: bytes) else { throw .invalidKey(reason: "not a private key") }
        try self.init(reading: handle)
    }

    /// From big-endian numbers (RFC 7518 section 6): for RSA `d`, `p`, `q`, `dp`, `dq`, `qi`; otherwise `d`. Throws
    /// `invalidKey` if they do not belong to the public key.
    public init(_ publicKey: PublicKey, numbers: [Secret]) throws(CryptographyError) {
        var numbers = numbers.map { $0.revealedBytes() }
        defer { for index in numbers.indices { numbers[index].erase() } }
        guard numbers.allSatisfy({ (1...PrivateKey.maxNumber).contains($0.count) }) else {
            throw .invalidKey(reason: "one of its numbers is empty or too long")
        }
        var bytes = try PrivateKey.encode(publicKey.parts, numbers)
        defer { bytes.erase() }
        guard let handle = KeyHandle(privateKey: bytes) else { throw .invalidKey(reason: "not a private key") }
        try self.init(reading: handle)
        guard self.publicKey == publicKey else {
            throw .invalidKey(reason: "its private and public parts do not belong together")
        }
    }

    /// RSA as PKCS #1 (RFC 8017 appendix A.1.2), curves as SEC 1 (RFC 5915), Ed25519 as PKCS #8 (RFC 8410 section 7).
    private static func encode(_ parts: PublicKey.Parts, _ numbers: [[UInt8]]) throws(CryptographyError) -> [UInt8] {
        switch parts {
        case .rsa(let modulus, let exponent):
            guard numbers.count == 6 else { throw .invalidKey(reason: "an RSA key must have d, p, q, dp, dq and qi") }
            let all = [[0], modulus, exponent] + numbers
            return DER.element(0x30, all.flatMap { DER.integer($0) })
        case .ellipticCurve(let curve, let x, let y):
            guard numbers.count == 1, numbers[0].count == curve.coordinateLength else {
                throw .invalidKey(reason: "the length of d does not fit the curve")
            }
            return DER.sequence(
                DER.integer([1]), DER.octetString(numbers[0]),
                DER.element(0xA0, DER.identifier(PublicKey.Identifier.of(curve))),
                DER.element(0xA1, DER.bitString([0x04] + x + y)))
        case .ed25519:
            guard numbers.count == 1, numbers[0].count == PublicKey.ed25519Length else {
                throw .invalidKey(reason: "an Ed25519 key must have 32 bytes")
            }
            return DER.sequence(
                DER.integer([0]), DER.sequence(DER.identifier(PublicKey.Identifier.ed25519)),
                DER.octetString(DER.octetString(numbers[0])))
        }
    }

    /// Of an encapsulation boundary (RFC 7468 section 2).
    private static func label(of line: ArraySlice<UInt8>, _ word: String) -> String? {
        let text = String(decoding: line, as: UTF8.self)
        let head = "-----\(word) "
        guard text.hasPrefix(head), let end = text.utf8.lastIndex(where: { $0 != 0x20 && $0 != 0x09 }),
            text[...end].hasSuffix("-----"), text[...end].utf8.count > head.utf8.count + 5
        else { return nil }
        return String(text[...end].dropFirst(head.utf8.count).dropLast(5))
    }
}

/// Owns one EVP_PKEY. The key is immutable and libcrypto locks its internal caches, so threads may share it.
@safe final class KeyHandle: @unchecked Sendable {
    private let key: OpaquePointer

    init(owning key: OpaquePointer) { unsafe self.key = unsafe key }

    deinit { unsafe EVP_PKEY_free(key) }

    /// RFC 5280 section 4.1; nil if libcrypto cannot read it.
    convenience init?(subjectPublicKeyInfo bytes: [UInt8]) {
        let key = unsafe bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return unsafe d2i_PUBKEY(nil, &next, buffer.count)
        }
        ERR_clear_error()
        guard let key = unsafe key else { return nil }
        unsafe self.init(owning: key)
    }

    /// An unencrypted PKCS #8, PKCS #1 or SEC 1 structure; nil if libcrypto cannot read it.
    convenience init?(privateKey bytes: [UInt8]) {
        let key = unsafe bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &next, buffer.count)
        }
        ERR_clear_error()
        guard let key = unsafe key else { return nil }
        unsafe self.init(owning: key)
    }

    /// By libcrypto's name: `RSA`, `EC`, `ED25519`.
    func isType(_ name: String) -> Bool { unsafe EVP_PKEY_is_a(key, name) == 1 }

    /// libcrypto's name of the curve.
    func groupName() -> String? {
        defer { ERR_clear_error() }
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, count < name.count else {
            return nil
        }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// On its curve and not at infinity.
    func hasValidPoint() -> Bool {
        guard let context = unsafe EVP_PKEY_CTX_new(key, nil) else { return false }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        let isValid = unsafe EVP_PKEY_public_check(context) == 1
        ERR_clear_error()
        return isValid
    }

    func verify(signature: [UInt8], message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        // Errors that stay in the thread's error queue would be reported for a later operation.
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        guard unsafe EVP_DigestVerifyInit_ex(context, &options, algorithm.digestName, nil, nil, key, nil) == 1,
            unsafe KeyHandle.setPadding(options, algorithm)
        else { return false }
        return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// In libcrypto's form: DER for ECDSA.
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

    /// Big-endian, padded to `length` bytes, or without leading zeros.
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

    /// RFC 7748 section 6.1; nil if the public key yields zero.
    func agree(withX25519 publicKey: [UInt8]) -> Secret? {
        defer { ERR_clear_error() }
        guard let peer = unsafe EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, publicKey, publicKey.count) else {
            return nil
        }
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

    /// Of an Ed25519 or X25519 key.
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
