internal import RingbackBase
internal import Synchronization

/// When a failed refresh may be tried again. Measured in time since boot, so that setting the wall clock changes
/// nothing.
struct Backoff: Sendable {
    private var failures = 0
    private(set) var until = BootInstant(milliseconds: 0)
    /// Until when the provider asked to wait (`Retry-After`). An explicit refresh respects this too.
    private var providerUntil = BootInstant(milliseconds: 0)
    private(set) var error: BrokerError?
    /// When requests were made during this outage; only those of the last hour are kept.
    private var attempts: [BootInstant] = []
    private var earlyRetryAt: BootInstant?

    /// The longest wait after a failure at the provider. A provider that is down gets about twenty requests in an hour.
    private static let longest: Duration = .seconds(300)
    /// After a local failure (a full disk, an unreadable secret), which costs the provider no request.
    private static let longestHere: Duration = .seconds(30)
    /// The failed requests in an hour, whatever causes them: a network that returns again and again, or callers at the
    /// end of every wait. With those for metadata the provider gets at most thirty.
    private static let hourlyLimit = 24
    private static let hour: Duration = .seconds(3_600)
    /// When the network returns, a request is made even above that, up to this count and once a minute.
    private static let earlyRetryLimit = 26
    private static let earlyRetryInterval: Duration = .seconds(60)
    /// In seconds: a provider that asks for a month is asked again after a day.
    private static let longestRetryAfter = 86_400

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
        // Every refresh token was presented.
        case .vaultUnreachable(.session(.endUncertain), _): longest = Backoff.longest
        default: break
        }
        let half = min(.seconds(1 << (failures - 1)), longest) / 2
        // Half of the wait is random, so that many daemons do not retry at the same time.
        until = boot + half + half * Double.random(in: 0...1)
        if let seconds = error.retryAfter {
            providerUntil = max(providerUntil, boot + .seconds(min(seconds, Backoff.longestRetryAfter)))
        }
        until = max(until, providerUntil, boot + (error.waitForOtherHost ?? .zero))
        if attempts.count >= Backoff.hourlyLimit, let first = attempts.first {
            until = max(until, first + Backoff.hour)
        }
        self.error = error
    }

    /// The session that the requests were for has ended. Only the wait that the provider asked for is kept.
    mutating func keepOnlyRetryAfter() {
        guard providerUntil > BootInstant(milliseconds: 0) else { return self = Backoff() }
        failures = 0
        until = providerUntil
    }

    /// The cause of the failures may be over (the network is back). The next attempt may be made at once, unless the
    /// provider's `Retry-After` has not passed or ``earlyRetryLimit`` is reached.
    mutating func allowEarlyRetry(at boot: BootInstant) {
        // A network that goes up and down must not use up the hour's requests before it is stable.
        guard error != nil, attempts.count < Backoff.earlyRetryLimit,
            earlyRetryAt.map({ boot - $0 >= Backoff.earlyRetryInterval }) ?? true
        else { return }
        earlyRetryAt = boot
        failures = 0
        until = min(until, max(boot, providerUntil))
    }

    /// The error for a caller who comes before the wait is over; nil if a request may be made.
    func refusal(at boot: BootInstant) -> BrokerError? {
        guard let error, boot < until else { return nil }
        return refusalByProvider(at: boot) ?? error.waiting((until - boot).secondsRoundedUp)
    }

    /// The same, but only the provider's `Retry-After` counts.
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

/// Some providers respond to a dead refresh token with 400 and an empty body, or another code than `invalid_grant`.
/// That proves nothing: the refresh is repeated at the longest interval. After five in a row a sign-in is offered.
extension LaneState.Renewal {
    static let refusalLimit = 5

    mutating func countRefusal(_ error: BrokerError) {
        switch error {
        case .refreshRefused: refusals += 1
        // No response of the provider itself: the count stays as it is.
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme), .provider(.unavailable),
            .provider(.failing), .provider(.rateLimited):
            break
        default: refusals = error.refusal == nil ? 0 : refusals + 1
        }
    }
}

extension ProviderProblem {
    fileprivate var isDefinite: Bool { !isRateLimit && !isTrouble && retryAfter == nil && providerCode != nil }
}

extension BrokerError {
    /// The refusal to show if this is repeated; nil if it may end by itself, or a sign-in would fail with it too.
    fileprivate var refusal: (host: String?, RefreshRefusal)? {
        switch self {
        case .provider(.unexplained(let host, let status, let message)):
            return (host, .unexplained(status: status, message: message))
        case .provider(.refused(let code, let message)) where !BrokerError.codesOfClient.contains(code):
            return (nil, .answered(code: code, message: message))
        case .problem(let problem) where problem.isDefinite && problem.recovery != "fix_configuration":
            return (nil, .answered(code: problem.providerCode ?? "", message: problem.providerMessage))
        default: return nil
        }
    }

    /// What only a change of the settings or the registration mends (RFC 6749 section 5.2; the last two: GitHub).
    private static let codesOfClient: Set = [
        "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
        "incorrect_client_credentials", "deleted_client",
    ]
}

extension LaneState {
    /// - Parameter isOfRequest: the refresh was for a downscoped token.
    func explaining(_ error: BrokerError, of name: AccountName, isOfRequest: Bool) -> BrokerError {
        guard !isOfRequest, let session, !session.isConfigured, renewal.refusals + 1 >= Renewal.refusalLimit,
            let (host, refusal) = error.refusal
        else { return error }
        let place = (try? WebURL(parsing: session.tokenEndpointOrigin))?.place
        return .refreshRefused(name, host: host ?? place ?? session.issuer, refusal)
    }

    /// True if a session of a service account cannot be renewed because of an error that does not end by itself. A
    /// sign-in cannot help there, so the provider is asked only when a caller requests a token.
    var needsConfigurationChange: Bool {
        guard session?.isConfigured == true, let error = renewal.backoff.error else { return false }
        return !error.isTransient
    }
}

/// A limit on how often a caller may cause requests: the holder of an exposed socket could ask for downscoped tokens
/// without end, until the provider rate-limits the owner too.
public final class Allowance: Sendable {
    private let asked = Mutex<[BootInstant]>([])
    private let most: Int
    private let window: Duration

    /// - Parameters:
    ///   - most: how many requests one window allows; more than the tokens that a program holds at a time.
    ///   - window: how long a request counts.
    public init(most: Int = 30, in window: Duration = .seconds(60)) {
        self.most = most
        self.window = window
    }

    /// Counts a request. Returns nil if it is allowed, else the whole seconds until the next one is.
    func take(at now: BootInstant) -> Int? {
        asked.withLock { asked in
            asked.removeAll { $0 <= now - window }
            guard asked.count >= most, let first = asked.first else {
                asked.append(now)
                return nil
            }
            return (first + window - now).secondsRoundedUp
        }
    }
}
