internal import BrokerCore
internal import OAuth

/// When a device flow sends its polling requests. A value without a clock; callers pass the time. Instants are since
/// boot, including suspended time: setting the clock does not change them, and after a suspension one request is due,
/// not many.
struct DeviceSchedule: Sendable, Equatable {
    /// What to do now.
    enum Step: Sendable, Equatable {
        /// Sleep for at most this long, then call `step` again.
        case sleep(Duration)
        case ask
        /// No more requests are sent.
        case over
    }

    private var pace: DevicePace
    private(set) var due: BootInstant
    /// When the codes expire.
    let end: BootInstant

    /// Timers do not count the time that the machine is suspended.
    private static let longestSleep: Duration = .seconds(30)

    /// - Parameters:
    ///   - interval: between two polling requests.
    ///   - life: the lifetime of the codes.
    ///   - receivedAt: when the codes were received.
    init(interval: Duration, life: Duration, receivedAt: BootInstant) {
        pace = DevicePace(interval: interval)
        due = receivedAt + pace.pause
        end = receivedAt + life
    }

    func step(at now: BootInstant) -> Step {
        if max(due, now) > end { return .over }
        // Sleep one millisecond more: the clock rounds down.
        return now > due ? .ask : .sleep(min(due - now + .milliseconds(1), DeviceSchedule.longestSleep))
    }

    /// Notes the result of a polling request and schedules the next.
    mutating func answered(_ event: DevicePace.Event, at now: BootInstant) {
        pace.note(event)
        due = now + pace.pause
    }
}
