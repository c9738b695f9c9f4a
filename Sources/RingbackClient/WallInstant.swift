package import StrictJSON

/// An instant by the wall clock, to the second.
///
/// With Foundation, `Date(timeIntervalSince1970: Double(instant.secondsSince1970))` is the same instant.
public struct WallInstant: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Unix time: seconds since 1970-01-01T00:00:00Z, without leap seconds.
    public var secondsSince1970: Int

    public init(secondsSince1970: Int) { self.secondsSince1970 = secondsSince1970 }

    /// The wall clock now.
    public static var now: WallInstant { WallInstant(secondsSince1970: WallClock.seconds()) }

    /// From here to the other; negative if that is earlier. Limited to what an `Int` of seconds can hold.
    public func duration(to other: WallInstant) -> Duration {
        let (seconds, overflow) = other.secondsSince1970.subtractingReportingOverflow(secondsSince1970)
        return .seconds(overflow ? (other > self ? .max : .min) : seconds)
    }

    public static func < (left: WallInstant, right: WallInstant) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }

    /// RFC 3339 in UTC, such as `2027-01-15T14:05:09Z`; `@` and the seconds for a year that has not four digits.
    public var description: String {
        // The years 0000 to 9999.
        guard (-62_167_219_200..<253_402_300_800).contains(secondsSince1970) else { return "@\(secondsSince1970)" }
        let days = (secondsSince1970 >= 0 ? secondsSince1970 : secondsSince1970 - 86_399) / 86_400
        let rest = secondsSince1970 - days * 86_400
        let (year, month, day) = WallInstant.date(daysSince1970: days)
        func padded(_ number: Int, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
        return "\(date)T\(padded(rest / 3_600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))Z"
    }

    /// The date in the proleptic Gregorian calendar. Years are counted from March, so that the leap day is a year's last.
    private static func date(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
        // Days since 0000-03-01; an era is 400 years.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    /// The instant that a JSON member states; nil if it is missing or no whole number.
    package init?(_ json: JSON?) {
        guard let seconds = json?.integer else { return nil }
        self.init(secondsSince1970: seconds)
    }
}
