internal import Synchronization

/// Counters for `GET /v1/metrics`. Labels are account, method and code. Their values are all from closed sets: no text
/// from a caller or a provider becomes a label.
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
    /// How long sign-ins took. The buckets are added up to cumulative ones only in the output.
    struct Durations: Sendable {
        /// The upper bounds of the buckets in seconds.
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
    private let issuedTokens = Mutex<[String: IssuedTokens]>([:])

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

    /// A sign-in was cancelled.
    public func signInCancelled(_ account: String, method: String) {
        counts.withLock { $0.cancelled[SignIn(account: account, method: method), default: 0] += 1 }
    }

    /// A sign-in ended without a session; `code` is one of the socket API's.
    public func signInFailed(_ account: String, method: String, code: String) {
        counts.withLock { $0.failed[Failure(account: account, method: method, code: code), default: 0] += 1 }
    }

    /// A token request was sent to refresh a token.
    public func refreshAttempted(_ account: String) {
        counts.withLock { $0.refreshes[account, default: 0] += 1 }
    }

    /// A refresh failed; `code` is one of the socket API's.
    public func refreshFailed(_ account: String, code: String) {
        counts.withLock { $0.failedRefreshes[Failure(account: account, method: nil, code: code), default: 0] += 1 }
    }

    /// How many tokens of one account were issued. A connection keeps it for its next request.
    public final class IssuedTokens: Sendable {
        fileprivate let count = Atomic<Int>(0)

        /// A token was issued.
        public func add() { count.wrappingAdd(1, ordering: .relaxed) }
    }

    /// The counter of an account.
    public func issuedTokens(of account: String) -> IssuedTokens {
        issuedTokens.withLock { counters in
            if let known = counters[account] { return known }
            let counter = IssuedTokens()
            counters[account] = counter
            return counter
        }
    }

    /// A copy of all counters.
    func snapshot() -> Counts {
        var copy = counts.withLock { $0 }
        // An account without issued tokens has no line.
        copy.issuedTokens = issuedTokens.withLock { counters in
            counters.mapValues { $0.count.load(ordering: .relaxed) }.filter { $0.value > 0 }
        }
        return copy
    }
}
