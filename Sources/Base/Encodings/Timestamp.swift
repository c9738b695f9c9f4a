/// Times in the format of RFC 3339 and in Unix seconds.
public enum Timestamp {
    /// The time in UTC: `2026-11-21T05:16:41Z`. Years outside 0000 to 9999 are clamped.
    public static func text(of seconds: Int) -> String {
        let bounded = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let days = bounded >= 0 ? bounded / 86_400 : (bounded - 86_399) / 86_400
        let rest = bounded - days * 86_400
        let (year, month, day) = Calendar.date(ofDay: days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(rest / 3_600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))Z"
    }

    /// Reads a date-time (RFC 3339 section 5.6) as Unix seconds; fractions of a second are dropped. Nil for other text.
    public static func seconds(of text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 64, bytes[4] == 0x2D, bytes[7] == 0x2D,
            bytes[10] | 0x20 == UInt8(ascii: "t"), bytes[13] == 0x3A, bytes[16] == 0x3A,
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
            let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]), let second = number(bytes[17..<19]),
            (1...12).contains(month), day >= 1, day <= Calendar.length(ofMonth: month, year), hour < 24, minute < 60,
            second <= 60, let offset = offset(bytes[19...])
        else { return nil }
        return Calendar.day(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    }

    /// Reads the text after the seconds: an optional fraction, then `Z` or an offset such as `+01:00`. Returns the
    /// offset in seconds.
    private static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
        var rest = bytes
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { isDigit($0) }
            guard !digits.isEmpty else { return nil }
            rest = rest.dropFirst(digits.count + 1)
        }
        let parts = Array(rest)
        if parts.count == 1, parts[0] | 0x20 == UInt8(ascii: "z") { return 0 }
        guard parts.count == 6, parts[0] == 0x2B || parts[0] == 0x2D, parts[3] == 0x3A,
            let hours = number(parts[1..<3]), let minutes = number(parts[4..<6]), hours < 24, minutes < 60
        else { return nil }
        return (parts[0] == 0x2D ? -1 : 1) * (hours * 3_600 + minutes * 60)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy({ isDigit($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
}
