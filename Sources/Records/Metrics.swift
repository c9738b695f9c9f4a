internal import Synchronization

/// Counters of what the broker does, for `GET /v1/metrics`. Labels are account, method and code, all from closed sets:
/// nothing that a caller or a provider writes becomes a label.
public final class Metrics: Sendable {
    struct SignIn: Hashable, Sendable {
        let account: String
        let method: String
    }
    struct Failure: Hashable, Sendable {
        let account: String
        let method: String?
        let code: String
    }
    /// How long sign-ins took, cumulative as the format wants it only when it is written.
    struct Durations: Sendable {
        /// Upper bounds in seconds: a click, a password, a second factor, a walk to the other device.
        static let bounds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600]

        var buckets = [Int](repeating: 0, count: Durations.bounds.count)
        var count = 0
        var sum: Duration = .zero

        mutating func add(_ duration: Duration) {
            count += 1
            sum += duration
            if let place = Durations.bounds.firstIndex(where: { duration <= .seconds($0) }) { buckets[place] += 1 }
        }
    }
    struct Counts: Sendable {
        var started: [SignIn: Int] = [:]
        var completed: [SignIn: Int] = [:]
        var cancelled: [SignIn: Int] = [:]
        var failed: [Failure: Int] = [:]
        var durations: [SignIn: Durations] = [:]
        var refreshes: [String: Int] = [:]
        var failedRefreshes: [Failure: Int] = [:]
        var issuedTokens: [String: Int] = [:]
    }
    private let counts = Mutex(Counts())

    public init() {}

    /// A sign-in was started.
    public func signInStarted(_ account: String, method: String) {
        counts.withLock { $0.started[SignIn(account: account, method: method), default: 0] += 1 }
    }

    /// A sign-in ended with a session.
    public func signInCompleted(_ account: String, method: String, duration: Duration) {
        counts.withLock { counts in
            let key = SignIn(account: account, method: method)
            counts.completed[key, default: 0] += 1
            counts.durations[key, default: Durations()].add(duration)
        }
    }

    /// A sign-in was withdrawn.
    public func signInCancelled(_ account: String, method: String) {
        counts.withLock { $0.cancelled[SignIn(account: account, method: method), default: 0] += 1 }
    }

    /// A sign-in ended without a session; `code` is one of the socket API's.
    public func signInFailed(_ account: String, method: String, code: String) {
        counts.withLock { $0.failed[Failure(account: account, method: method, code: code), default: 0] += 1 }
    }

    /// A request to a token endpoint was made to renew a token.
    public func refreshAttempted(_ account: String) {
        counts.withLock { $0.refreshes[account, default: 0] += 1 }
    }

    /// It did not renew it; `code` is one of the socket API's.
    public func refreshFailed(_ account: String, code: String) {
        counts.withLock { $0.failedRefreshes[Failure(account: account, method: nil, code: code), default: 0] += 1 }
    }

    /// A token was handed out. On the way of a request: a lock and a number.
    public func handedOut(_ account: String) {
        counts.withLock { counts in
            if let index = counts.issuedTokens.index(forKey: account) {
                counts.issuedTokens.values[index] += 1
            } else {
                counts.issuedTokens[account] = 1
            }
        }
    }

    /// Everything that was counted, at one instant.
    func snapshot() -> Counts { counts.withLock { $0 } }
}
