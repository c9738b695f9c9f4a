/// Times in the format of RFC 3339 and in Unix seconds.
public enum Timestamp {
    /// In UTC: `2026-11-21T05:16:41Z`. Years outside 0000 to 9999 are clamped.
    public static func text(of seconds: Int) -> String {
        let bounded = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let days = bounded >= 0 ? bounded / 86_400 : (bounded - 86_399) / 86_400
        let rest = bounded - days * 86_400
        let (year, month, day) = Calendar.date(ofDay: days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(rest / 3_600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))Z"
    }

    /// A date-time (RFC 3339 section 5.6) as Unix seconds; fractions of a second are dropped.
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

    /// After the seconds: an optional fraction, then `Z` or an offset such as `+01:00`. In seconds.
    private static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
        var rest = bytes
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix(while: \.isDigit)
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
        guard digits.allSatisfy(\.isDigit) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
}

/// The proleptic Gregorian calendar. Here a year begins in March, so that the leap day is its last day. An era is 400
/// years, which have 146,097 days.
public enum Calendar {
    /// Since 1970-01-01. `month` is 1 to 12.
    public static func day(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// `days` since 1970-01-01 may be negative.
    public static func date(ofDay days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    /// In days.
    public static func length(ofMonth month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

public enum TimeSpan {
    /// The seconds of `90s`, `15m`, `8h`, `7d` or `2w`, as users write them; nil for anything else.
    public static func seconds(of text: String) -> Int? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        guard let unit = text.last.flatMap({ units[$0] }), text.utf8.dropLast().allSatisfy(\.isDigit),
            let count = Int(text.dropLast())
        else { return nil }
        let (seconds, isTooMuch) = count.multipliedReportingOverflow(by: unit)
        return isTooMuch ? nil : seconds
    }
}
