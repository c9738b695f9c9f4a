/// A form of base64, decoded strictly: each byte sequence has exactly one accepted text. So two texts that differ never
/// decode to the same bytes, which matters where texts are compared, signed or hashed.
public protocol Base64Form {
    static var codec: Base64Codec { get }
}

/// base64url without padding (RFC 4648 section 5, RFC 7515 section 2), as JOSE and PKCE write bytes.
public enum Base64URL: Base64Form {
    public static let codec = Base64Codec(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", isPadded: false)
}

/// Standard base64 with padding (RFC 4648 section 4), as the Basic scheme writes credentials (RFC 7617).
public enum Base64: Base64Form {
    public static let codec = Base64Codec(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", isPadded: true)
}

extension Base64Form {
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: codec.encode(bytes), as: UTF8.self)
    }

    /// The bytes as UTF-8 text, for secrets: a `String` cannot be erased.
    public static func encodeToBytes(_ bytes: some Sequence<UInt8>) -> [UInt8] { codec.encode(bytes) }

    /// Nil for text that is not canonical: with white space, missing or superfluous padding, or unused bits set.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? { codec.decode(Array(text.utf8)[...]) }

    /// UTF-8 text, see ``decode(_:)``.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? { codec.decode(text) }
}

/// An alphabet with its rule for padding.
public struct Base64Codec: Sendable {
    private static let padding = UInt8(ascii: "=")
    private static let noDigit: UInt8 = 0xFF
    let digits: [UInt8]
    let values: [UInt8]
    let isPadded: Bool

    init(alphabet: String, isPadded: Bool) {
        digits = Array(alphabet.utf8)
        var values = [UInt8](repeating: Base64Codec.noDigit, count: 256)
        for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
        self.values = values
        self.isPadded = isPadded
    }

    func encode(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity((bytes.underestimatedCount + 2) / 3 * 4)
        var buffer: UInt32 = 0
        var bits = 0
        for byte in bytes {
            // At most 6 bits are left over from before, so the buffer holds at most 14 bits.
            buffer = (buffer & 0x3F) << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                output.append(digits[Int(buffer >> UInt32(bits)) & 0x3F])
            }
        }
        if bits > 0 { output.append(digits[Int(buffer << UInt32(6 - bits)) & 0x3F]) }
        while isPadded, output.count % 4 != 0 { output.append(Base64Codec.padding) }
        return output
    }

    func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var text = text
        if isPadded {
            guard text.count % 4 == 0 else { return nil }
            // Removes at most two padding characters. With a third one, the length check below fails.
            for _ in 0..<2 where text.last == Base64Codec.padding { text.removeLast() }
        }
        // A single remaining digit has 6 bits, too few for a byte.
        guard text.count % 4 != 1 else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(text.count / 4 * 3 + 2)
        var buffer: UInt32 = 0
        var bits = 0
        for digit in text {
            let value = values[Int(digit)]
            guard value != Base64Codec.noDigit else { return nil }
            buffer = (buffer & 0x3F) << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                output.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        guard buffer & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
        return output
    }
}
