internal import Cryptography
internal import Encodings
internal import Synchronization

/// The forms in which the real server writes names, times and numbers.
enum SupabaseText {
    /// A random UUID (RFC 9562 section 5.4).
    static func uuid() -> String {
        var bytes = RandomToken.bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return uuid(bytes)
    }

    static func uuid(_ bytes: [UInt8]) -> String {
        let hex = Array(Digest.hex(bytes))
        return [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]].map { String($0) }
            .joined(separator: "-")
    }

    static func isUUID(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.utf8.count) == [8, 4, 4, 4, 12] && parts.joined().allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    /// The 16 bytes of a UUID.
    static func bytes(ofUUID text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Random letters of an alphabet, all equally likely.
    static func random(_ count: Int, from alphabet: String) -> String {
        let letters = Array(alphabet)
        let fair = 256 - 256 % letters.count
        var text = ""
        while text.count < count {
            let byte = Int(RandomToken.bytes(1)[0])
            if byte < fair { text.append(letters[byte % letters.count]) }
        }
        return text
    }

    /// A number as a user types it, without `+` and spaces; nil if it is not E.164 then.
    static func phone(_ text: String) -> String? {
        var digits = text.filter { $0 != " " }
        if digits.hasPrefix("+") { digits.removeFirst() }
        guard (2...15).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            !digits.hasPrefix("0")
        else { return nil }
        return digits
    }

    /// Lower-cased; nil if it is no address.
    static func email(_ text: String) -> String? {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"(),:;<>[\\]".utf8.contains($0) }
        guard text.utf8.count <= 255, isPlain, parts.count == 2, let local = parts.first, let domain = parts.last,
            !local.isEmpty, domain.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty })
        else { return nil }
        return text.lowercased()
    }
}

/// The same for requests: what cannot be read refuses them.
extension SupabaseText {
    static func address(_ text: String) throws(SupabaseErrorResponse) -> String {
        guard let email = email(text) else {
            throw .validation("Unable to validate email address: invalid format")
        }
        return email
    }

    static func number(_ text: String) throws(SupabaseErrorResponse) -> String {
        guard let phone = phone(text) else { throw .validation("Invalid phone number format (E.164 required)") }
        return phone
    }

    /// `sms` unless the request names another channel.
    static func channel(_ name: String) throws(SupabaseErrorResponse) -> String {
        guard ["", "sms", "whatsapp"].contains(name) else {
            throw .validation(
                "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or"
                    + " Twilio Verify is used as the provider.")
        }
        return name.isEmpty ? "sms" : name
    }
}

/// A point in time as Go writes it (RFC 3339, UTC): up to nine fractional digits, without zeros at the end.
struct SupabaseInstant: Sendable, Equatable {
    let seconds: Int
    let nanoseconds: Int

    private static let ticks = Atomic(0)

    /// A time that keeps the order of events: within one second, each is later than the last.
    static func next(_ now: Int) -> SupabaseInstant {
        let tick = ticks.add(1, ordering: .relaxed).newValue
        return SupabaseInstant(seconds: now, nanoseconds: tick * 1_013_370 % 1_000_000_000)
    }

    var text: String {
        let digits = String(nanoseconds)
        var fraction = (String(repeating: "0", count: 9 - digits.utf8.count) + digits)[...]
        while fraction.hasSuffix("0") { fraction.removeLast() }
        return Timestamp.text(of: seconds).dropLast() + (fraction.isEmpty ? "Z" : ".\(fraction)Z")
    }
}
