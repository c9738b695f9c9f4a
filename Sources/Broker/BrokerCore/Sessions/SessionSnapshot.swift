public import RingbackBase
internal import Synchronization

/// The tokens that may be issued at this instant, for readers that must not wait: each session's own access token with
/// its details. Written in the same turn as the session changes; empty for an account whose session is being closed.
public final class SessionSnapshot: Sendable {
    /// One account's token. An object, since a copy of the token has a dozen parts to be counted.
    public final class Entry: Sendable {
        public let issuedToken: IssuedToken
        public let encoding = Encoding()

        init(_ issuedToken: IssuedToken) { self.issuedToken = issuedToken }
    }

    /// A token as a reader has encoded it, so that it is encoded once a second at most. Freed with the token.
    public final class Encoding: Sendable {
        /// A number that no other token has or had. For data that may be kept longer than the token.
        public let number = Encoding.count.wrappingAdd(1, ordering: .relaxed).newValue
        private let made = Mutex<(remaining: Int?, expiresAt: Int?, bytes: [UInt8])?>(nil)
        private static let count = Atomic<UInt64>(0)

        /// The last encoding, if the remaining seconds and the expiry are the same as then; otherwise a new one.
        public func bytes(expiresAt: Int?, remaining: Int?, _ make: () -> [UInt8]) -> [UInt8] {
            made.withLock { made in
                if let made, made.remaining == remaining, made.expiresAt == expiresAt { return made.bytes }
                let bytes = make()
                made = (remaining, expiresAt, bytes)
                return bytes
            }
        }
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let clock: BrokerClock

    init(clock: BrokerClock) { self.clock = clock }

    func publish(_ issuedToken: IssuedToken?, for account: AccountName) {
        entries.withLock { $0[account.rawValue] = issuedToken.map { Entry($0) } }
    }

    /// The account's token, if it is valid long enough for a caller who named no `min_valid`; its expiry in Unix
    /// seconds, and in seconds from now. The last two are nil where the expiry is not known.
    public func current(_ account: String) -> (entry: Entry, expiresAt: Int?, remaining: Int?)? {
        guard let entry = entries.withLock({ $0[account] }) else { return nil }
        let boot = clock.bootInstant
        guard entry.issuedToken.token.satisfies(minValid: SessionManager.defaultMinValid, at: boot) else { return nil }
        let expiry = entry.issuedToken.token.expiry
        return (entry, expiry?.wall(by: clock, at: boot).seconds, expiry?.remaining(at: boot).wholeSeconds)
    }
}

/// A token for a caller, with the parts of its session that the caller may see. It holds no refresh token.
public struct IssuedToken: Sendable {
    public let account: AccountName
    public let subject: String?
    public let issuer: String
    public let token: AccessToken
    /// The token's scope, or else the session's; nil where neither is known.
    public let scope: String?
    public let user: JSONObject?
    /// The session's ID token; a caller needs a permission of its own for it.
    public let idToken: Secret?
    /// The session's key of proofs. No caller sees it.
    public let proofKey: Secret?
    /// The part of the session's attachment that callers may see; the secrets need a permission of their own.
    public let shown: SessionAttachment?

    public init(_ token: AccessToken, of session: Session, _ account: Account) {
        shown = account.kind.shown(of: session)
        self.account = account.name
        self.token = token
        subject = session.subject
        issuer = session.issuer
        scope = token.scope ?? session.scope
        user = session.user
        idToken = session.identity?.token
        proofKey = session.proofKey
    }
}

/// Which token of a session a caller gets: the one that is held, one that a refresh brings, or none.
struct TokenChoice: Sendable {
    let query: SessionQuery
    let account: Account
    let session: Session
    let now: BootInstant

    private var held: AccessToken? { query.token(in: session) }

    /// The held token, if valid long enough; nil if a refresh comes first. Throws if no refresh can bring the token.
    func beforeRefresh() throws(BrokerError) -> IssuedToken? {
        if let held, held.satisfies(minValid: query.minValid ?? SessionManager.defaultMinValid, at: now) {
            return issued(held)
        }
        guard !session.canRenew(query.key, at: now) else { return nil }
        if let held = enough { return issued(held) }
        if query.key != .own, !query.key.isAssertion, let own = session.tokens[.own], own.isValid(at: now) {
            throw .methodUnsupported(.session(.notDownscopable(account.name, advice: account.renewalAdvice)))
        }
        throw .sessionRanOut(account.name, advice: account.renewalAdvice)
    }

    func afterRefresh() throws(BrokerError) -> IssuedToken {
        guard let held else { throw .signInRequired(account.name) }
        guard held.isValid(at: now) else {
            // If refreshes bring no ID token, only a sign-in does. An expired access token is the provider's mistake.
            guard query.kind == .accessToken else { throw .signInRequired(account.name) }
            throw .provider(.invalidResponse(.stated("The provider gave a token that has expired already.")))
        }
        return issued(held)
    }

    /// The token although the refresh failed: nil if the caller asked for a longer validity, or none is valid.
    var despiteFailure: IssuedToken? { enough.map(issued) }

    /// The held token, if the caller named no validity and it has not expired.
    private var enough: AccessToken? {
        guard query.minValid == nil, let held, held.isValid(at: now) else { return nil }
        return held
    }

    private func issued(_ token: AccessToken) -> IssuedToken { IssuedToken(token, of: session, account) }
}

extension AccessToken {
    func isValid(at boot: BootInstant) -> Bool { remaining(at: boot) != .zero }
}
