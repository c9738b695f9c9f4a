internal import COpenSSL
public import Secrets

/// The SHA-2 family (FIPS 180-4).
public enum Digest {
    /// SHA-256: 32 bytes.
    public static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] { hash(Array(bytes), .sha256) }
    /// SHA-256 of the text's UTF-8: 32 bytes.
    public static func sha256(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha256) }
    /// SHA-256 of the secret: 32 bytes. If the secret can be guessed, its digest must not be shown.
    public static func sha256(_ secret: Secret) -> [UInt8] { hash(secret, .sha256) }

    /// SHA-384: 48 bytes.
    public static func sha384(_ bytes: some Collection<UInt8>) -> [UInt8] { hash(Array(bytes), .sha384) }
    /// SHA-384 of the text's UTF-8: 48 bytes.
    public static func sha384(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha384) }
    /// SHA-384 of the secret: 48 bytes.
    public static func sha384(_ secret: Secret) -> [UInt8] { hash(secret, .sha384) }

    /// SHA-512: 64 bytes.
    public static func sha512(_ bytes: some Collection<UInt8>) -> [UInt8] { hash(Array(bytes), .sha512) }
    /// SHA-512 of the text's UTF-8: 64 bytes.
    public static func sha512(_ text: String) -> [UInt8] { hash(Array(text.utf8), .sha512) }
    /// SHA-512 of the secret: 64 bytes.
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
        case sha256, sha384, sha512

        var length: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }
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
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        var digest = [UInt8](repeating: 0, count: function.length)
        let status = unsafe EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, type, nil)
        precondition(status == 1, "libcrypto cannot hash")
        return digest
    }
}
