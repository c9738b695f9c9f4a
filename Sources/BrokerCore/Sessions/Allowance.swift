internal import Synchronization

/// How often somebody may make us ask a provider. Who holds a restricted socket could ask for one narrow token after
/// another, or for one that is always refused, and each time the owner's session would be presented at the provider: until
/// it asks the owner to slow down, too.
public final class Allowance: Sendable {
    private let asked = Mutex<[BootInstant]>([])
    private let most: Int
    private let window: Duration

    /// - Parameters:
    ///   - most: requests in a window; more than the tokens that a program holds at a time.
    ///   - window: how long a request counts.
    public init(most: Int = 30, in window: Duration = .seconds(60)) {
        self.most = most
        self.window = window
    }

    /// Takes one; if there is none left, returns the whole seconds until there is.
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
