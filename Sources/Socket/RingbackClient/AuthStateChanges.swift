import RingbackBase

/// What happened to an account. Open, since the daemon may be newer than the app.
public struct AuthEvent: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: String) { rawValue = value }

    /// The account's present state: the first event, and again the first after each reconnection to the daemon.
    public static let initialSession: AuthEvent = "initial_session"
    public static let signedIn: AuthEvent = "signed_in"
    public static let tokenRefreshed: AuthEvent = "token_refreshed"
    public static let userUpdated: AuthEvent = "user_updated"
    public static let signedOut: AuthEvent = "signed_out"
    public static let passwordRecovery: AuthEvent = "password_recovery"
    public static let mfaChallengeVerified: AuthEvent = "mfa_challenge_verified"
    public static let signInFailed: AuthEvent = "sign_in_failed"
    /// A callback of a pending sign-in was refused. The sign-in keeps waiting.
    public static let callbackRefused: AuthEvent = "callback_refused"
    public static let refreshFailed: AuthEvent = "refresh_failed"
    /// The session will end soon and cannot be renewed: ``Session/endsAt`` says when.
    public static let sessionEnding: AuthEvent = "session_ending"
}

public struct AuthStateChanges: AsyncSequence, Sendable {
    public typealias Element = (event: AuthEvent, session: Session?)
    public typealias Failure = RingbackError

    private static let backlog = 64
    let source: AuthEventSource

    public func makeAsyncIterator() -> BrokerEventIterator<Element> {
        BrokerEventIterator(of: source, backlog: Self.backlog)
    }
}

extension BrokerClient {
    /// What happens to the account from now on, starting with `initial_session`: its present state. The session beside
    /// an event is nil when no token can be issued: the account is signed out, or its token has expired while the
    /// provider cannot be reached (then ``Account/isStale`` is true and the user is still signed in). When the daemon
    /// restarts, the sequence reconnects, continues after the last event it saw, and gives `initial_session` again.
    ///
    /// It throws only errors that waiting does not change: `account_not_found`, `policy_denied`, `foreign_server`.
    public func authStateChanges(_ account: String) -> AuthStateChanges {
        AuthStateChanges(source: AuthEventSource(account: account, client: self))
    }
}

struct AuthEventSource: EventSource {
    let account: String
    let client: BrokerClient
    static let finalErrors: [RingbackError.Kind] = [.accountNotFound, .policyDenied, .foreignServer]
    /// After a reconnection the daemon continues with the events that follow this one.
    var lastID: String?

    mutating func follow(
        _ interruption: Interruption, hasConnected: () -> Void, _ deliver: (AuthStateChanges.Element) -> Void
    ) throws(RingbackError) -> Bool {
        try RequestTarget.checkAccount(account)
        let calls = try client.calls(interruption)
        let events = try calls.openEvents(account: account, lastEventID: lastID)
        while let event = try events.next() {
            hasConnected()
            if let id = event.id { lastID = id }
            guard let data = try? JSON(parsing: event.data.utf8), data["account"]?.string == account else { continue }
            let state = Account.State(rawValue: data["state"]?.string ?? "")
            var session: Session?
            if state.hasSession {
                let request = SessionRequest(account: account, include: "user")
                session = try? Session(reading: try calls.session(request))
                session?.endsAt = WallInstant(data["ends_at"])
            }
            deliver((AuthEvent(rawValue: event.name), session))
        }
        return false
    }
}
