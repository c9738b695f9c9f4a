internal import Encodings
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
        return Timestamp.text(of: secondsSince1970)
    }

    /// The instant of a JSON member with a time as text (RFC 3339); nil if it is missing or is not such a text.
    package init?(text json: JSON?) {
        guard let seconds = json?.string.flatMap({ Timestamp.seconds(of: $0) }) else { return nil }
        self.init(secondsSince1970: seconds)
    }

    /// The instant that a JSON member states; nil if it is missing or no whole number.
    package init?(_ json: JSON?) {
        guard let seconds = json?.integer else { return nil }
        self.init(secondsSince1970: seconds)
    }
}
