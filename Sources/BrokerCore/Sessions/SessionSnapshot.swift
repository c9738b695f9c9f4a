public import Secrets
public import StrictJSON
internal import Synchronization

/// What may be handed out at this instant, for readers who must not wait: the session's own access token and what goes
/// with it. Written in the same turn as the session changes; empty for an account whose session is being closed.
public final class SessionSnapshot: Sendable {
    /// One account's token. Two entries with the same generation are the same.
    public struct Entry: Sendable {
        public let generation: UInt64
        public let issuedToken: IssuedToken
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

    func publish(_ issuedToken: IssuedToken?, for account: AccountName) {
        state.withLock { state in
            state.generation += 1
            state.entries[account.rawValue] = issuedToken.map { Entry(generation: state.generation, issuedToken: $0) }
        }
    }

    /// The account's token, if it lives long enough for a caller who named no `min_valid`; and when it expires (Unix
    /// seconds) and in how many seconds; nil where nobody knows.
    public func current(_ account: String) -> (entry: Entry, expiresAt: Int?, remaining: Int?)? {
        guard let entry = state.withLock({ $0.entries[account] }) else { return nil }
        let boot = clock.bootInstant
        guard entry.issuedToken.token.satisfies(minValid: SessionManager.defaultMinValid, at: boot) else { return nil }
        let expiry = entry.issuedToken.token.expiry
        return (entry, expiry?.wall(by: clock).seconds, expiry?.remaining(at: boot))
    }
}

/// What a caller gets: the token and what they may see of its session. No refresh token.
public struct IssuedToken: Sendable {
    public let account: AccountName
    public let subject: String?
    public let issuer: String
    public let token: AccessToken
    /// What the token is good for, in the provider's words; nil where it says nothing.
    public let scope: String?
    /// Claims about the user.
    public let user: JSONObject?
    /// The session's ID token; a caller needs a permission of its own for it.
    public let idToken: Secret?
    /// What only this kind of account has, as far as callers may see it; the secrets need a permission of their own.
    public let shown: SessionAttachment?

    public init(
        _ token: AccessToken, of session: Session, _ account: AccountName, shown: SessionAttachment? = nil
    ) {
        self.shown = shown
        self.account = account
        self.token = token
        subject = session.subject
        issuer = session.issuer
        scope = token.scope ?? session.scope
        user = session.user
        idToken = session.identity?.token
    }
}
