/// An instant of this boot: milliseconds since the machine was started, suspended time included. It never goes back,
/// and means nothing after the next boot.
public struct BootInstant: Sendable, Hashable, Comparable {
    public let milliseconds: Int

    public init(milliseconds: Int) { self.milliseconds = milliseconds }

    public static func < (left: BootInstant, right: BootInstant) -> Bool { left.milliseconds < right.milliseconds }

    /// The instant that is `duration` later, at most the largest one that can be represented.
    public static func + (instant: BootInstant, duration: Duration) -> BootInstant {
        let (sum, overflows) = instant.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
        return BootInstant(milliseconds: overflows ? (duration < .zero ? .min : .max) : sum)
    }

    public static func - (instant: BootInstant, duration: Duration) -> BootInstant {
        instant + (.zero - duration)
    }

    /// How long after another instant this one is; negative if it is before.
    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        .milliseconds(left.milliseconds) - .milliseconds(right.milliseconds)
    }

    /// The largest instant that can be represented. It is never reached.
    public static let never = BootInstant(milliseconds: .max)
}

/// An instant by the wall clock: Unix time in seconds, as users and providers state it. The clock may be set at any
/// moment, so no decision here depends on it alone.
public struct WallInstant: Sendable, Hashable, Comparable {
    public let seconds: Int

    public init(seconds: Int) { self.seconds = seconds }

    public static func < (left: WallInstant, right: WallInstant) -> Bool { left.seconds < right.seconds }

    /// The instant that is `duration` later, rounded up to a whole second; at most the largest one that can be
    /// represented.
    public static func + (instant: WallInstant, duration: Duration) -> WallInstant {
        let (sum, overflows) = instant.seconds.addingReportingOverflow(duration.secondsRoundedUp)
        return WallInstant(seconds: overflows ? (duration < .zero ? .min : .max) : sum)
    }

    /// How long after another instant this one is; negative if it is before.
    public static func - (left: WallInstant, right: WallInstant) -> Duration {
        .seconds(left.seconds) - .seconds(right.seconds)
    }
}

extension Duration {
    /// Whole seconds, rounded down.
    public var wholeSeconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) - (attoseconds < 0 ? 1 : 0)
    }

    /// Whole seconds, rounded up: waiting this long is long enough.
    public var secondsRoundedUp: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) + (attoseconds > 0 ? 1 : 0)
    }

    /// Whole milliseconds, rounded toward zero; limited to what an `Int` can hold.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, overflows) = Int(seconds).multipliedReportingOverflow(by: 1_000)
        guard !overflows else { return seconds < 0 ? .min : .max }
        let (sum, isTooLong) = whole.addingReportingOverflow(Int(attoseconds / 1_000_000_000_000_000))
        return isTooLong ? (seconds < 0 ? .min : .max) : sum
    }
}
