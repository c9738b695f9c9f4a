/// When the token endpoint may be polled next (RFC 8628 section 3.5). Each wait starts after the previous response, not
/// after the request, so that a slow provider is not polled more often.
public struct DevicePace: Sendable, Equatable {
    /// The current interval in seconds between a response and the next poll.
    public private(set) var interval: Int
    /// The number of consecutive polls without a usable response.
    private var failures = 0
    private var isSlowed = false
    /// Seconds of a `Retry-After` for the next poll.
    private var retryAfter = 0

    /// The result of a poll.
    public enum Event: Sendable, Equatable {
        /// `authorization_pending`
        case pending
        /// `slow_down`, with the interval in seconds that some providers send with it.
        case slowDown(interval: Int?)
        /// No connection, no response in time, or a status that means "later"; `retryAfter` in seconds, if given.
        case unanswered(retryAfter: Int?)
    }

    /// Section 3.5: how many seconds each `slow_down` adds permanently.
    public static let slowing = 5
    /// After a `slow_down` the wait is a quarter longer: by a fifth (1 / `faster`) and a twentieth. The provider's
    /// clock may run faster than ours, and otherwise each poll would again be slightly too early.
    private static let faster = 5
    /// The longest back-off, so that the sign-in continues soon after the network is back.
    private static let longestPause: Duration = .seconds(120)
    /// The longest interval in seconds, whatever the provider adds.
    private static let longestInterval = DeviceAuthorization.longestLife

    public init(interval: Int) {
        self.interval = min(max(interval, 1), DevicePace.longestInterval)
    }

    /// The interval to use in seconds for a stated one: at least five seconds, and not so long that no poll fits into
    /// the lifetime of the codes.
    public static func sensible(_ stated: Int?, within life: Int) -> Int {
        let usual = DeviceAuthorization.shortestInterval
        return min(max(stated ?? usual, usual), max(life - usual, usual))
    }

    /// Records the result of a poll.
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

    /// From the last response (or failure) to the next poll.
    public var pause: Duration {
        var pause: Duration = .seconds(interval)
        if isSlowed { pause += pause / DevicePace.faster + pause / 20 }
        let doubled = min(pause * (1 << failures), max(DevicePace.longestPause, pause))
        return max(doubled, .seconds(retryAfter))
    }
}
