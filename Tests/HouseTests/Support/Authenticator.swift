import Cryptography
import Glibc

/// An authenticator app: a secret in base 32, a clock, and six digits (RFC 6238 with SHA-1).
enum Authenticator {
    /// - Parameter steps: how many half minutes from now; servers take the neighbours of the present one too.
    static func code(_ secret: String, steps: Int = 0) -> String {
        let counter = UInt64(time(nil) / 30 + steps)
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64($0))) }
        let digest = hmac(message, key: base32(secret))
        let offset = Int(digest[19] & 15)
        let number = digest[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let digits = String(number % 1_000_000)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }

    private static func base32(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var (buffer, bits) = (UInt32(0), 0)
        for character in text.utf8 {
            guard let value = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8).firstIndex(of: character) else { continue }
            buffer = buffer << 5 | UInt32(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
                buffer &= (1 << UInt32(bits)) - 1
            }
        }
        return bytes
    }

    private static func hmac(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        let short = key.count > 64 ? Digest.sha1(key) : key
        let block = short + [UInt8](repeating: 0, count: 64 - short.count)
        return Digest.sha1(block.map { $0 ^ 0x5C } + Digest.sha1(block.map { $0 ^ 0x36 } + message))
    }
}
