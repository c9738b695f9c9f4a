/// When a provider may be asked again whether the person has said yes (RFC 8628 section 3.5). Every wait counts from the
/// answer before, not from the question: a slow provider is not asked more often for being slow.
public struct DevicePace: Sendable, Equatable {
    /// Seconds that a provider wants between an answer and the next question, as it stands now.
    public private(set) var interval: Int
    /// Attempts in a row that brought no answer.
    private var failures = 0
    private var isSlowed = false
    /// Seconds that the provider said to stay away for the next time.
    private var retryAfter = 0

    /// What came of a question.
    public enum Event: Sendable, Equatable {
        /// `authorization_pending`
        case pending
        /// `slow_down`, with the interval that some providers state beside it (seconds).
        case slowDown(interval: Int?)
        /// No connection, no answer in time, or one that says "later"; seconds, where it says how much later.
        case unanswered(retryAfter: Int?)
    }

    /// Section 3.5: what each `slow_down` adds, for good (seconds).
    public static let slowing = 5
    /// A provider that has said `slow_down` once counts with a clock that is faster than ours: by up to a fifth, and a
    /// bit. Otherwise each of its words would be answered a moment too early again.
    private static let faster = 5
    /// The longest back-off: a network that is back must not find us asleep (milliseconds).
    private static let longestPause = 120_000
    /// No provider may keep us busy with additions (seconds).
    private static let longestInterval = DeviceAuthorization.longestLife

    public init(interval: Int) {
        self.interval = min(max(interval, 1), DevicePace.longestInterval)
    }

    /// A stated interval as it is kept to, in seconds: never less than the usual five, nor so much that not a single
    /// question would fit into the codes' life.
    public static func sensible(_ stated: Int?, within life: Int) -> Int {
        let usual = DeviceAuthorization.shortestInterval
        return min(max(stated ?? usual, usual), max(life - usual, usual))
    }

    /// Learns from an answer, or from none.
    public mutating func note(_ event: Event) {
        switch event {
        case .pending:
            failures = 0
            retryAfter = 0
        case .slowDown(let stated):
            failures = 0
            retryAfter = 0
            isSlowed = true
            interval = min(max(interval + DevicePace.slowing, stated ?? 0), DevicePace.longestInterval)
        case .unanswered(let seconds):
            failures = min(failures + 1, 16)
            retryAfter = min(seconds ?? 0, RetryAfter.longest)
        }
    }

    /// Milliseconds from the last answer (or from giving up on it) to the next question.
    public var pause: Int {
        var milliseconds = interval * 1_000
        if isSlowed { milliseconds += milliseconds / DevicePace.faster + milliseconds / 20 }
        let doubled = min(milliseconds << failures, max(DevicePace.longestPause, milliseconds))
        return max(doubled, retryAfter * 1_000)
    }
}
