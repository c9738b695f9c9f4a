internal import COpenSSL
public import RingbackBase

/// AES-256-GCM (NIST SP 800-38D) with a new random nonce for each message: nonce, ciphertext and tag, concatenated.
/// Random nonces of 96 bits collide with a probability of 2^-32 only after 2^32 messages under one key.
public enum SealedBox {
    /// In bytes.
    public static let keyLength = 32
    /// The bytes by which a sealed text is longer than the text.
    public static let overhead = nonceLength + tagLength
    static let nonceLength = 12
    static let tagLength = 16

    /// `context` is authenticated but not part of the result; `open` needs the same bytes. Throws `invalidKey` if the
    /// key does not have 32 bytes, `failed` if libcrypto fails.
    public static func seal(_ text: Secret, with key: Secret, context: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try seal(text, with: key, context: context, nonce: RandomToken.bytes(nonceLength))
    }

    /// Nil if the box was not sealed with this key and this context, or was changed. Throws `invalidKey` if the key
    /// does not have 32 bytes, and `failed` if libcrypto fails, which says nothing about the box.
    public static func open(
        _ box: some Collection<UInt8>, with key: Secret, context: [UInt8]
    ) throws(CryptographyError) -> Secret? {
        guard key.count == keyLength else { throw .invalidKey(reason: "an AES-256 key has 32 bytes") }
        let box = Array(box)
        guard box.count >= overhead else { return nil }
        let cipher = try CipherContext()
        defer { ERR_clear_error() }
        guard cipher.begin(key, nonce: Array(box[..<nonceLength]), context: context, isSealing: false) else {
            throw .failed(operation: "open a sealed text")
        }
        var text = [UInt8](repeating: 0, count: box.count - overhead)
        defer { text.erase() }
        guard cipher.update(box[nonceLength..<(box.count - tagLength)], into: &text),
            cipher.setTag(Array(box.suffix(tagLength)))
        else { throw .failed(operation: "open a sealed text") }
        // The decrypted text is not used before the tag has been checked.
        return cipher.finish() ? Secret(bytes: text) : nil
    }

    /// For tests with known results: with a nonce that is used twice under one key, the texts can be computed.
    static func seal(
        _ text: Secret, with key: Secret, context: [UInt8], nonce: [UInt8]
    ) throws(CryptographyError) -> [UInt8] {
        guard key.count == keyLength else { throw .invalidKey(reason: "an AES-256 key has 32 bytes") }
        let cipher = try CipherContext()
        defer { ERR_clear_error() }
        var ciphertext = [UInt8](repeating: 0, count: text.count)
        guard cipher.begin(key, nonce: nonce, context: context, isSealing: true),
            cipher.update(text, into: &ciphertext), cipher.finish(), let tag = cipher.tag()
        else { throw .failed(operation: "seal a text") }
        return nonce + ciphertext + tag
    }
}

/// One EVP_CIPHER_CTX; freeing it erases the key schedule.
@safe private final class CipherContext {
    private let context: OpaquePointer

    init() throws(CryptographyError) {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .failed(operation: "make a cipher") }
        unsafe self.context = context
    }

    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    func begin(_ key: Secret, nonce: [UInt8], context associated: [UInt8], isSealing: Bool) -> Bool {
        let started = key.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                let key = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                return unsafe EVP_CipherInit_ex2(context, EVP_aes_256_gcm(), key, nonce, isSealing ? 1 : 0, nil) == 1
            }
        }
        guard started else { return false }
        guard !associated.isEmpty else { return true }
        var count: Int32 = 0
        return unsafe EVP_CipherUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
    }

    func update(_ input: ArraySlice<UInt8>, into output: inout [UInt8]) -> Bool {
        unsafe input.withUnsafeBytes { unsafe update($0, into: &output) }
    }

    func update(_ input: Secret, into output: inout [UInt8]) -> Bool {
        input.withBytes { span in unsafe span.withUnsafeBytes { unsafe update($0, into: &output) } }
    }

    private func update(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
        guard let start = input.baseAddress, input.count > 0 else { return true }
        guard input.count <= output.count, input.count <= Int32.max else { return false }
        var count: Int32 = 0
        return unsafe EVP_CipherUpdate(
            context, &output, &count, start.assumingMemoryBound(to: UInt8.self), Int32(input.count)) == 1
            && Int(count) == input.count
    }

    /// Computes the tag when sealing, or checks it when opening. GCM has no further output.
    func finish() -> Bool {
        var rest = [UInt8](repeating: 0, count: 16)
        var count: Int32 = 0
        return unsafe EVP_CipherFinal_ex(context, &rest, &count) == 1 && count == 0
    }

    func setTag(_ tag: [UInt8]) -> Bool {
        var tag = tag
        return unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1
    }

    func tag() -> [UInt8]? {
        var tag = [UInt8](repeating: 0, count: SealedBox.tagLength)
        let isRead = unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), &tag) == 1
        return isRead ? tag : nil
    }
}

/// Derives keys and identifiers from a key: HKDF with SHA-256 (RFC 5869). Not for passphrases, see ``Scrypt``.
public enum KeyDerivation {
    /// 1 to 8,160 bytes. Results for different purposes are independent of each other. Throws `failed` if libcrypto
    /// fails.
    public static func derive(
        from key: Secret, salt: [UInt8] = [], purpose: String, length: Int = 32
    ) throws(CryptographyError) -> Secret {
        try derive(from: key, salt: salt, info: Array(purpose.utf8), length: length)
    }

    static func derive(
        from key: Secret, salt: [UInt8], info: [UInt8], length: Int
    ) throws(CryptographyError) -> Secret {
        precondition((1...255 * 32).contains(length), "HKDF has no such output")
        let salt = Secret(bytes: salt.isEmpty ? [UInt8](repeating: 0, count: 32) : salt)
        var extracted = try authenticate(key, key: salt)
        let root = Secret(bytes: extracted)
        extracted.erase()
        var output: [UInt8] = []
        // Reserve the whole length: growing would leave copies of the key in memory.
        output.reserveCapacity(length + 32)
        var block: [UInt8] = []
        var number: UInt8 = 1
        while output.count < length {
            let next = try authenticate(Secret(bytes: block + info + [number]), key: root)
            block.erase()
            block = next
            output += block
            number &+= 1
        }
        block.erase()
        defer { output.erase() }
        return Secret(bytes: output.prefix(length))
    }

    /// HMAC-SHA-256 (RFC 2104).
    private static func authenticate(_ message: Secret, key: Secret) throws(CryptographyError) -> [UInt8] {
        defer { ERR_clear_error() }
        var code = [UInt8](repeating: 0, count: 32)
        let isDone = key.withBytes { key in
            message.withBytes { message in
                unsafe key.withUnsafeBytes { key in
                    unsafe message.withUnsafeBytes { unsafe authenticate($0, key: key, into: &code) }
                }
            }
        }
        guard isDone else { throw .failed(operation: "derive a key") }
        return code
    }

    private static func authenticate(
        _ message: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, into code: inout [UInt8]
    ) -> Bool {
        var count = 0
        let start = unsafe message.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = unsafe EVP_Q_mac(
            nil, "HMAC", nil, "SHA256", nil, key.baseAddress, key.count, start, message.count, &code, code.count,
            &count)
        return unsafe result != nil && count == code.count
    }
}

/// Derives a key from a passphrase with scrypt, which costs time and memory for each guess (RFC 7914).
public enum Scrypt {
    /// Of one guess. Every value of this type is within the accepted limits.
    public struct Cost: Sendable, Equatable {
        /// N = 2^17: 128 MiB and about half a second for each guess.
        public static let standard = Cost(n: 1 << 17, r: 8, p: 1)
        /// A power of two.
        public let n: Int
        /// The block size.
        public let r: Int
        /// The number of runs, one after another.
        public let p: Int

        /// Nil for more than 256 MiB or sixteen times the standard work: the numbers are read from a file, and a huge
        /// cost would block the machine.
        public init?(validN n: Int, r: Int, p: Int) {
            guard n >= 2, n <= 1 << 21, n & (n - 1) == 0, (1...64).contains(r), (1...64).contains(p) else { return nil }
            guard 128 * n * r <= 256 << 20, n * r * p <= 1 << 24 else { return nil }
            self.init(n: n, r: r, p: p)
        }

        private init(n: Int, r: Int, p: Int) {
            self.n = n
            self.r = r
            self.p = p
        }
    }

    /// The same for the same passphrase, salt and cost. Throws `failed` if the memory cannot be allocated.
    public static func derive(
        _ passphrase: Secret, salt: [UInt8], cost: Cost = .standard, length: Int = 32
    ) throws(CryptographyError) -> Secret {
        defer { ERR_clear_error() }
        var key = [UInt8](repeating: 0, count: length)
        defer { key.erase() }
        // libcrypto's default limit is 32 MiB. It also counts the memory for p and one more block.
        let memory = UInt64(128 * cost.r * (cost.n + cost.p + 2) + (1 << 20))
        let isDerived = passphrase.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                return unsafe EVP_PBE_scrypt(
                    start, bytes.count, salt, salt.count, UInt64(cost.n), UInt64(cost.r), UInt64(cost.p), memory,
                    &key, length) == 1
            }
        }
        guard isDerived else { throw .failed(operation: "derive a key from a passphrase") }
        return Secret(bytes: key)
    }
}
