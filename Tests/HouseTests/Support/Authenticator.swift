// An authenticator app: a secret in base 32, a clock, and six digits (RFC 6238 with SHA-1, which needs no library).

import Glibc

enum Authenticator {
    /// The code of a secret.
    ///
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
        let short = key.count > 64 ? sha1(key) : key
        let block = short + [UInt8](repeating: 0, count: 64 - short.count)
        return sha1(block.map { $0 ^ 0x5C } + sha1(block.map { $0 ^ 0x36 } + message))
    }

    private static func sha1(_ message: [UInt8]) -> [UInt8] {
        var bytes = message + [0x80]
        while bytes.count % 64 != 56 { bytes.append(0) }
        let length = UInt64(message.count) * 8
        bytes += (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * UInt64($0))) }
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        for start in stride(from: 0, to: bytes.count, by: 64) { mix(bytes[start..<start + 64], into: &state) }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
    }

    private static func mix(_ block: ArraySlice<UInt8>, into state: inout [UInt32]) {
        func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
        var words = (0..<16).map { index in
            block.dropFirst(4 * index).prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            let sum = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
            words.append(rotated(sum, 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (choice, constant): (UInt32, UInt32) =
                switch index {
                case ..<20: ((b & c) | (~b & d), 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotated(a, 5) &+ choice &+ e &+ constant &+ words[index]
            (e, d, c, b, a) = (d, c, rotated(b, 30), a, next)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] = state[index] &+ word }
    }
}
