/// When a failed refresh may be tried again. All instants are milliseconds since boot: no clock that is set moves them.
struct Backoff: Sendable {
    private var failures = 0
    private(set) var until = 0
    /// The provider's own word, which even an explicit refresh respects.
    private var providerUntil = 0
    private(set) var error: BrokerError?
    /// When requests were made during this outage, the latest hour's.
    private var attempts: [Int] = []
    private var relentedAt = -Backoff.relentInterval

    /// Seconds. A provider that is down is asked about twenty times in an hour.
    private static let longest = 300
    /// Seconds. What fails here (a full disk, a secret that cannot be had) costs no provider anything.
    private static let longestHere = 30
    /// Whatever asks for it: the network that returns again and again, callers at every end of a wait. With the
    /// discovery that is asked to confirm now and then, the provider gets at most thirty requests.
    private static let hourlyLimit = 24
    private static let hour = 3_600_000
    /// The network's return is tried beyond the others' limit, but once a minute at most.
    private static let relentLimit = 26
    private static let relentInterval = 60_000
    /// Nobody waits longer than this for a provider that says "next month" (seconds).
    private static let longestRetryAfter = 86_400

    /// A request failed.
    mutating func note(_ error: BrokerError, at boot: Int) {
        failures = min(failures + 1, 16)
        var longest = Backoff.longestHere
        if case .provider = error {
            longest = Backoff.longest
            attempts.append(boot)
            attempts.removeAll { $0 <= boot - Backoff.hour }
        }
        let delay = min(1 << (failures - 1), longest) * 1_000
        // Half of it is chance, so that many daemons do not return in step.
        until = boot + delay / 2 + Int.random(in: 0...delay / 2)
        providerUntil = error.retryAfter.map { boot + min($0, Backoff.longestRetryAfter) * 1_000 } ?? 0
        until = max(until, providerUntil)
        if attempts.count >= Backoff.hourlyLimit, let first = attempts.first {
            until = max(until, first + Backoff.hour)
        }
        self.error = error
    }

    /// What made the attempts fail may be over (the network is back): the next one need not wait, unless the provider
    /// or the hour's limit says so.
    mutating func relent(at boot: Int) {
        // A network that flaps must not use the hour up before it is back for good.
        guard error != nil, attempts.count < Backoff.relentLimit, boot - relentedAt >= Backoff.relentInterval else {
            return
        }
        relentedAt = boot
        failures = 0
        until = min(until, max(boot, providerUntil))
    }

    /// The answer to a caller who comes too early.
    func refusal(at boot: Int) -> BrokerError? {
        guard let error, boot < until else { return nil }
        return refusalByProvider(at: boot) ?? error
    }

    /// The same, where only the provider's `Retry-After` counts.
    func refusalByProvider(at boot: Int) -> BrokerError? {
        guard boot < providerUntil, let error else { return nil }
        let seconds = (providerUntil - boot + 999) / 1_000
        switch error {
        case .provider(.unavailable(let status, _)):
            return .provider(.unavailable(status: status, retryAfter: seconds))
        case .provider(.failing(let status, let code, let message, _)):
            return .provider(.failing(status: status, code: code, message: message, retryAfter: seconds))
        default: return .provider(.rateLimited(retryAfter: seconds))
        }
    }
}
