import Glibc

/// Formats times for users.
public enum TimeText {
    /// `9:41` or `1:02:03`. Negative values give `0:00`.
    public static func clock(_ seconds: Int) -> String {
        let left = max(0, seconds)
        let rest = twoDigits(left % 60)
        guard left >= 3_600 else { return "\(left / 60):\(rest)" }
        return "\(left / 3_600):\(twoDigits(left / 60 % 60)):\(rest)"
    }

    /// In one or two units: `45 s`, `12 min`, `3 h 20 min`, `4 days`.
    public static func span(_ seconds: Int) -> String {
        let left = max(0, seconds)
        switch left {
        case ..<120: return "\(left) s"
        case ..<7_200: return "\(left / 60) min"
        case ..<172_800:
            let minutes = left / 60 % 60
            return minutes == 0 ? "\(left / 3_600) h" : "\(left / 3_600) h \(minutes) min"
        default: return "\(left / 86_400) days"
        }
    }

    /// How long something is valid: `for 59 min`, `expired`; `no stated end` if `instant` is nil. Unix seconds.
    public static func validity(until instant: Int?, now: Int) -> String {
        guard let instant else { return "no stated end" }
        // Compared before the subtraction, which may overflow for values far away.
        guard instant > now else { return "expired" }
        let (left, overflow) = instant.subtractingReportingOverflow(now)
        return "for \(span(overflow ? .max : left))"
    }

    /// After the word "token": `valid for 59 min`, `expired`, `without a stated end`.
    public static func phrase(until instant: Int?, now: Int) -> String {
        guard let instant else { return "without a stated end" }
        return (instant > now ? "valid " : "") + validity(until: instant, now: now)
    }

    /// Local: `14:05:09`.
    public static func timeOfDay(_ instant: Int) -> String {
        var seconds = time_t(instant)
        var parts = unsafe tm()
        guard unsafe localtime_r(&seconds, &parts) != nil else { return "--:--:--" }
        let fields = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec]
        return fields.map { twoDigits(Int($0)) }.joined(separator: ":")
    }

    /// Local: `2027-01-15 14:05`.
    public static func dateAndMinute(_ instant: Int) -> String { String(dateAndTime(instant).prefix(16)) }

    /// Local: `2027-01-15 14:05:09`.
    public static func dateAndTime(_ instant: Int) -> String {
        var seconds = time_t(instant)
        var parts = unsafe tm()
        guard unsafe localtime_r(&seconds, &parts) != nil else { return "----------" }
        let (year, month, day) = unsafe (Int(parts.tm_year) + 1_900, Int(parts.tm_mon) + 1, Int(parts.tm_mday))
        return "\(year)-\(twoDigits(month))-\(twoDigits(day)) \(timeOfDay(instant))"
    }

    /// In Unix seconds.
    public static func now() -> Int { time(nil) }
    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
