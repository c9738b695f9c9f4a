internal import BrokerCore
internal import OAuth

/// When a device flow sends its polling requests. A value without a clock; callers pass the time. All instants are
/// milliseconds since boot, including suspended time: setting the clock does not change them, and after a suspension
/// one request is due, not many.
struct DeviceSchedule: Sendable, Equatable {
    /// What to do now.
    enum Step: Sendable, Equatable {
        /// Sleep for at most this many milliseconds, then call `step` again.
        case sleep(Int)
        case ask
        /// No more requests are sent.
        case over
    }

    private var pace: DevicePace
    private(set) var due: Int
    /// When the codes expire.
    let end: Int

    /// The longest sleep, in milliseconds. Timers do not count the time that the machine is suspended.
    private static let longestSleep = 30_000

    /// - Parameters:
    ///   - answeredAt: when the codes were received.
    ///   - life: their lifetime, in seconds.
    init(interval: Int, life: Int, answeredAt: Int) {
        pace = DevicePace(interval: interval)
        due = answeredAt + pace.pause
        end = answeredAt + life * 1_000
    }

    func step(at now: Int) -> Step {
        if max(due, now) > end { return .over }
        // Sleep one millisecond more: the clock rounds down.
        return now > due ? .ask : .sleep(min(due - now + 1, DeviceSchedule.longestSleep))
    }

    /// Notes the result of a polling request and schedules the next.
    mutating func answered(_ event: DevicePace.Event, at now: Int) {
        pace.note(event)
        due = now + pace.pause
    }
}
