internal import BrokerCore
internal import OAuth

/// When a device flow's questions are asked: a value without a clock, which is told the time. All instants are
/// milliseconds since boot, suspended time included, so no clock that is set moves them, and who wakes up late has one
/// question to ask, not many.
struct DeviceSchedule: Sendable, Equatable {
    /// What is to be done now.
    enum Step: Sendable, Equatable {
        /// Sleep at most so many milliseconds, and look again.
        case sleep(Int)
        case ask
        /// Nothing will be asked any more.
        case over
    }

    private var pace: DevicePace
    private(set) var due: Int
    /// When the codes end.
    let end: Int

    /// Nobody sleeps longer toward an instant: machines are suspended, and timers do not notice (milliseconds).
    private static let longestSleep = 30_000

    /// - Parameters:
    ///   - answeredAt: when the codes came.
    ///   - life: theirs, in seconds.
    init(interval: Int, life: Int, answeredAt: Int) {
        pace = DevicePace(interval: interval)
        due = answeredAt + pace.pause
        end = answeredAt + life * 1_000
    }

    func step(at now: Int) -> Step {
        if max(due, now) > end { return .over }
        // By one more: the clock has cut something off.
        return now > due ? .ask : .sleep(min(due - now + 1, DeviceSchedule.longestSleep))
    }

    /// The provider has answered, or not.
    mutating func answered(_ event: DevicePace.Event, at now: Int) {
        pace.note(event)
        due = now + pace.pause
    }
}
