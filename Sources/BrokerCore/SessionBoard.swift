internal import Synchronization

/// What may be handed out at this instant, for readers who must not wait: the session's own access token and what goes
/// with it. Written in the same turn as the session changes; empty for an account whose session is being closed.
public final class SessionBoard: Sendable {
    /// One account's token. Two entries with the same generation are the same.
    public struct Entry: Sendable {
        public let generation: UInt64
        public let handOut: HandOut
    }
    private struct State {
        var entries: [String: Entry] = [:]
        var generation: UInt64 = 0
    }
    private let state = Mutex(State())
    private let clock: BrokerClock

    init(clock: BrokerClock) {
        self.clock = clock
    }

    func publish(_ handOut: HandOut?, for account: AccountName) {
        state.withLock { state in
            state.generation += 1
            state.entries[account.rawValue] = handOut.map { Entry(generation: state.generation, handOut: $0) }
        }
    }

    /// The account's token, if it lives long enough for a caller who named no `min_valid`; and the time now.
    public func current(_ account: String) -> (entry: Entry, now: Int)? {
        guard let entry = state.withLock({ $0.entries[account] }) else { return nil }
        let now = clock.now()
        guard entry.handOut.token.satisfies(minValid: SessionBook.defaultMinValid, at: now) else { return nil }
        return (entry, now)
    }
}

/// What a caller gets.
public struct HandOut: Sendable {
    public let account: AccountName
    public let subject: String?
    public let issuer: String
    public let token: AccessToken
    public let session: Session
}
