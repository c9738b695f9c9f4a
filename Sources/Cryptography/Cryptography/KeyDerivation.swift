internal import COpenSSL
public import Secrets

/// Derives keys and identifiers from a key: HKDF with SHA-256 (RFC 5869). Not for passphrases, see ``Scrypt``.
public enum KeyDerivation {
    /// Derives `length` bytes, 1 to 8,160. Results for different purposes are independent of each other. Throws
    /// `failed` if libcrypto fails.
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
