/// When the token endpoint may be polled next (RFC 8628 section 3.5). Each wait starts after the previous response, not
/// after the request, so that a slow provider is not polled more often.
public struct DevicePace: Sendable, Equatable {
    /// The current interval between a response and the next poll.
    public private(set) var interval: Duration
    /// The number of consecutive polls without a usable response.
    private var failures = 0
    private var isSlowed = false
    /// The `Retry-After` for the next poll.
    private var retryAfter: Duration = .zero

    /// The result of a poll.
    public enum Event: Sendable, Equatable {
        /// `authorization_pending`
        case pending
        /// `slow_down`, with the interval that some providers send with it.
        case slowDown(interval: Duration?)
        /// No connection, no response in time, or a status that means "later", with its `Retry-After`, if given.
        case unanswered(retryAfter: Duration?)
    }

    /// Section 3.5: how much each `slow_down` adds permanently.
    public static let slowing: Duration = .seconds(5)
    /// After a `slow_down` the wait is a quarter longer: by a fifth (1 / `faster`) and a twentieth. The provider's
    /// clock may run faster than ours, and otherwise each poll would again be slightly too early.
    private static let faster = 5
    /// The longest back-off, so that the sign-in continues soon after the network is back.
    private static let longestPause: Duration = .seconds(120)
    /// The longest interval, whatever the provider adds.
    private static let longestInterval: Duration = .seconds(DeviceAuthorization.longestLife)

    public init(interval: Duration) {
        self.interval = min(max(interval, .seconds(1)), DevicePace.longestInterval)
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
            retryAfter = .zero
        case .slowDown(let stated):
            failures = 0
            retryAfter = .zero
            isSlowed = true
            interval = min(max(interval + DevicePace.slowing, stated ?? .zero), DevicePace.longestInterval)
        case .unanswered(let stated):
            failures = min(failures + 1, 16)
            retryAfter = min(stated ?? .zero, .seconds(RetryAfter.longest))
        }
    }

    /// From the last response (or failure) to the next poll.
    public var pause: Duration {
        var pause = interval
        if isSlowed { pause += pause / DevicePace.faster + pause / 20 }
        let doubled = min(pause * (1 << failures), max(DevicePace.longestPause, pause))
        return max(doubled, retryAfter)
    }
}
