internal import Synchronization

/// A limit on how often a caller may cause requests to a provider. The holder of an exposed socket could ask for one
/// downscoped token after another, or for one that is always refused. Each time the owner's refresh token would be sent
/// to the provider, until the provider rate-limits the owner too.
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
