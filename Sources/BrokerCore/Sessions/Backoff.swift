/// When a failed refresh may be tried again. Judged by the time since boot: setting the wall clock changes nothing.
struct Backoff: Sendable {
    private var failures = 0
    private(set) var until = BootInstant(milliseconds: 0)
    /// Until when the provider itself asked to wait, which even an explicit refresh respects.
    private var providerUntil = BootInstant(milliseconds: 0)
    private(set) var error: BrokerError?
    /// When requests were made during this outage, the latest hour's.
    private var attempts: [BootInstant] = []
    private var relentedAt: BootInstant?

    /// A provider that is down is asked about twenty times in an hour.
    private static let longest: Duration = .seconds(300)
    /// What fails here (a full disk, a secret that cannot be had) costs no provider anything.
    private static let longestHere: Duration = .seconds(30)
    /// Whatever asks for it: the network that returns again and again, callers at every end of a wait. With the
    /// discovery that is asked to confirm now and then, the provider gets at most thirty requests.
    private static let hourlyLimit = 24
    private static let hour: Duration = .seconds(3_600)
    /// The network's return is tried beyond the others' limit, but once a minute at most.
    private static let relentLimit = 26
    private static let relentInterval: Duration = .seconds(60)
    /// The longest wait that a provider may ask for, in seconds: one that says "next month" is asked again after a day.
    private static let longestRetryAfter = 86_400

    /// A request failed.
    mutating func note(_ error: BrokerError, at boot: BootInstant) {
        failures = min(failures + 1, 16)
        var longest = Backoff.longestHere
        switch error {
        case .refreshRefused:
            failures = 16
            fallthrough
        case .provider:
            longest = Backoff.longest
            attempts.append(boot)
            attempts.removeAll { $0 <= boot - Backoff.hour }
        default: break
        }
        let half = min(.seconds(1 << (failures - 1)), longest) / 2
        // Half of it is chance, so that many daemons do not return in step.
        until = boot + half + half * Double.random(in: 0...1)
        providerUntil =
            error.retryAfter.map { boot + .seconds(min($0, Backoff.longestRetryAfter)) } ?? BootInstant(milliseconds: 0)
        until = max(until, providerUntil)
        if attempts.count >= Backoff.hourlyLimit, let first = attempts.first {
            until = max(until, first + Backoff.hour)
        }
        self.error = error
    }

    /// The session that the requests were for has gone: what is left is the wait that the provider asked for.
    mutating func forgive() {
        guard providerUntil > BootInstant(milliseconds: 0) else { return self = Backoff() }
        failures = 0
        until = providerUntil
    }

    /// What made the attempts fail may be over (the network is back): the next one need not wait, unless the provider
    /// or the hour's limit says so.
    mutating func relent(at boot: BootInstant) {
        // A network that flaps must not use the hour up before it is back for good.
        guard error != nil, attempts.count < Backoff.relentLimit,
            relentedAt.map({ boot - $0 >= Backoff.relentInterval }) ?? true
        else { return }
        relentedAt = boot
        failures = 0
        until = min(until, max(boot, providerUntil))
    }

    /// The answer to a caller who comes too early.
    func refusal(at boot: BootInstant) -> BrokerError? {
        guard let error, boot < until else { return nil }
        return refusalByProvider(at: boot) ?? error
    }

    /// The same, where only the provider's `Retry-After` counts.
    func refusalByProvider(at boot: BootInstant) -> BrokerError? {
        guard boot < providerUntil, let error else { return nil }
        let seconds = (providerUntil - boot).secondsRoundedUp
        switch error {
        case .provider(.unavailable(let status, _)):
            return .provider(.unavailable(status: status, retryAfter: seconds))
        case .provider(.failing(let status, let code, let message, _)):
            return .provider(.failing(status: status, code: code, message: message, retryAfter: seconds))
        default: return .provider(.rateLimited(retryAfter: seconds))
        }
    }
}

/// Some providers answer a dead refresh token with 400 and an empty body. That proves nothing: the session is kept, and
/// tried again at the longest interval. After some refusals in a row the account says so and a sign-in is offered.
extension LaneState.Renewal {
    /// So many refusals in a row make it a state of its own.
    static let refusalLimit = 5

    mutating func countRefusal(_ error: BrokerError) {
        switch error {
        case .provider(.unexplained), .refreshRefused: unexplainedRefusals += 1
        // Nobody, or somebody on the way, answered.
        case .provider(.unreachable), .provider(.untrusted), .provider(.unavailable), .provider(.rateLimited): break
        default: unexplainedRefusals = 0
        }
    }
}

extension LaneState {
    /// What a failed refresh is told as.
    ///
    /// - Parameter isOfRequest: it was for a downscoped token.
    func explaining(_ error: BrokerError, of name: AccountName, isOfRequest: Bool) -> BrokerError {
        guard case .provider(.unexplained(let host, let status)) = error, !isOfRequest, session?.isOfService == false,
            renewal.unexplainedRefusals + 1 >= Renewal.refusalLimit
        else { return error }
        return .refreshRefused(name, host: host, status: status)
    }
}
