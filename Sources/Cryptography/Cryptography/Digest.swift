internal import COpenSSL
internal import Glibc
public import RingbackBase

/// The SHA-2 family (FIPS 180-4), of bytes or the UTF-8 of a text. If a secret can be guessed, its digest must not be
/// shown.
public enum Digest {
    /// SHA-1, only for the codes of authenticators (RFC 6238), which are valid for half a minute.
    package static func sha1(_ bytes: [UInt8]) -> [UInt8] { hash(bytes, .sha1) }
    public static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] { hash(Array(bytes), .sha256) }
    public static func sha256(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha256) }
    public static func sha256(_ secret: Secret) -> [UInt8] { hash(secret, .sha256) }
    public static func sha384(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha384) }
    public static func sha384(_ secret: Secret) -> [UInt8] { hash(secret, .sha384) }
    public static func sha512(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha512) }
    public static func sha512(_ secret: Secret) -> [UInt8] { hash(secret, .sha512) }

    /// Lower-case hexadecimal.
    public static func hex(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.underestimatedCount * 2)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    private enum Function {
        case sha1, sha256, sha384, sha512
    }

    private static func hash(_ bytes: [UInt8], _ function: Function) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe hash($0, function) }
    }

    private static func hash(_ secret: Secret, _ function: Function) -> [UInt8] {
        secret.withBytes { span in unsafe span.withUnsafeBytes { unsafe hash($0, function) } }
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer, _ function: Function) -> [UInt8] {
        let type =
            switch function {
            case .sha1: unsafe EVP_sha1()
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        var digest = [UInt8](repeating: 0, count: Int(unsafe EVP_MD_get_size(type)))
        let status = unsafe EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, type, nil)
        precondition(status == 1, "libcrypto cannot hash")
        return digest
    }
}

extension [UInt8] {
    /// Overwrites the bytes. Copies, and the old storage of an array that has grown, are not erased: reserve the
    /// capacity first and do not copy.
    package mutating func erase() {
        unsafe withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            unsafe explicit_bzero(start, buffer.count)
        }
    }
}

/// From the kernel's random generator, the project's only source of randomness. If it fails, the process stops.
public enum RandomToken {
    public static func bytes(_ count: Int) -> [UInt8] {
        precondition(count >= 0, "a length is not negative")
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var filled = 0
            while filled < count {
                // `getentropy` returns at most 256 bytes, waits until the generator is seeded, and no signal interrupts
                // it.
                let size = min(count - filled, 256)
                guard let start = buffer.baseAddress, unsafe getentropy(start + filled, size) == 0 else {
                    preconditionFailure("the kernel's random generator failed")
                }
                filled += size
            }
            initialized = count
        }
    }

    /// In base64url, for a state, a nonce or a PKCE verifier. 256 bits give 43 characters, the shortest verifier that
    /// RFC 7636 section 4.1 allows. Some providers truncate longer nonces.
    public static func base64URL(bits: Int = 256) -> Secret {
        var raw = bytes((bits + 7) / 8)
        var text = Base64URL.encodeToBytes(raw)
        defer {
            raw.erase()
            text.erase()
        }
        return Secret(bytes: text)
    }

    /// In base64url. It cannot be guessed but is not secret.
    public static func identifier(bits: Int = 128) -> String { Base64URL.encode(bytes((bits + 7) / 8)) }
}

/// Why an operation of libcrypto failed. It never contains key material. A signature that does not verify throws no
/// error.
public enum CryptographyError: Error, Sendable, Equatable {
    /// `reason` is a fixed text of this module.
    case invalidKey(reason: String)
    /// The algorithm does not belong to the key's type or curve.
    case algorithmMismatch
    /// The operation normally succeeds: too little memory, or a provider of algorithms that is not loaded.
    case failed(operation: String)
}
