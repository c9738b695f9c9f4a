internal import BrokerCore
internal import OAuth

/// When a device flow's questions are asked: a value without a clock, which is told the time. Instants are since boot,
/// suspended time included: setting the wall clock does not move them, and whoever wakes up late has one question to
/// ask, not many.
struct DeviceSchedule: Sendable, Equatable {
    /// What is to be done now.
    enum Step: Sendable, Equatable {
        /// Sleep at most so long, and look again.
        case sleep(Duration)
        case ask
        /// Nothing will be asked any more.
        case over
    }

    private var pace: DevicePace
    private(set) var due: BootInstant
    /// When the codes end.
    let end: BootInstant

    /// The longest sleep toward an instant: timers do not notice that a machine was suspended.
    private static let longestSleep: Duration = .seconds(30)

    /// - Parameters:
    ///   - interval: between two questions, in seconds.
    ///   - life: of the codes.
    ///   - answeredAt: when the codes came.
    init(interval: Int, life: Duration, answeredAt: BootInstant) {
        pace = DevicePace(interval: interval)
        due = answeredAt + .milliseconds(pace.pause)
        end = answeredAt + life
    }

    func step(at now: BootInstant) -> Step {
        if max(due, now) > end { return .over }
        // One more: the clock cuts off what is less than a millisecond.
        return now > due ? .ask : .sleep(min(due - now + .milliseconds(1), DeviceSchedule.longestSleep))
    }

    /// The provider has answered, or not.
    mutating func answered(_ event: DevicePace.Event, at now: BootInstant) {
        pace.note(event)
        due = now + .milliseconds(pace.pause)
    }
}
