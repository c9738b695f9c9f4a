internal import Synchronization

/// How often somebody may make us ask a provider. Who holds a restricted socket could ask for one narrow token after
/// another, or for one that is always refused, and each time the owner's session would be presented at the provider: until
/// it asks the owner to slow down, too.
public final class Allowance: Sendable {
    private let asked = Mutex<[Int]>([])
    private let most: Int
    private let window: Int

    /// - Parameters:
    ///   - most: requests in a window; more than the tokens that a program holds at a time.
    ///   - window: seconds.
    public init(most: Int = 30, in window: Int = 60) {
        self.most = most
        self.window = window * 1_000
    }

    /// Takes one at an instant since boot (milliseconds); if there is none left, the seconds until there is.
    func take(at now: Int) -> Int? {
        asked.withLock { asked in
            asked.removeAll { $0 <= now - window }
            guard asked.count >= most, let first = asked.first else {
                asked.append(now)
                return nil
            }
            return (first + window - now + 999) / 1_000
        }
    }
}
