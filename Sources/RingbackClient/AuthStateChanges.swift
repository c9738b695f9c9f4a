import StrictJSON

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
    public static let refreshFailed: AuthEvent = "refresh_failed"
    /// The session will end soon and cannot be renewed: ``Session/endsAt`` says when.
    public static let sessionEnding: AuthEvent = "session_ending"
}

/// The events of one account, each with the session as it is then. See ``BrokerClient/authStateChanges(_:)``.
public struct AuthStateChanges: AsyncSequence, Sendable {
    public typealias Element = (event: AuthEvent, session: Session?)
    public typealias Failure = RingbackError

    /// If a consumer is this many events behind, the oldest are dropped: the newest session is what counts.
    private static let backlog = 64

    let account: String
    let application: String
    let socket: String?

    /// Delivers events to one consumer, and closes its connection when the consumer stops.
    public struct Iterator: AsyncIteratorProtocol {
        var base: AsyncStream<Result<Element, RingbackError>>.Iterator

        public mutating func next() async throws(RingbackError) -> Element? { try await base.next()?.get() }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(RingbackError) -> Element? {
            try await base.next(isolation: actor)?.get()
        }
    }

    public func makeAsyncIterator() -> Iterator {
        let (stream, continuation) = AsyncStream<Result<Element, RingbackError>>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.backlog))
        let interruption: Interruption
        do throws(RingbackError) {
            interruption = try Interruption()
        } catch {
            continuation.yield(.failure(error))
            continuation.finish()
            return Iterator(base: stream.makeAsyncIterator())
        }
        continuation.onTermination = { _ in interruption.interrupt() }
        let pump = EventPump(account: account, application: application, socket: socket, interruption: interruption)
        let failure = Blocking.start {
            pump.run { continuation.yield($0) }
            continuation.finish()
        }
        if failure != 0 {
            continuation.yield(.failure(.system("pthread_create", failure)))
            continuation.finish()
        }
        return Iterator(base: stream.makeAsyncIterator())
    }
}

extension BrokerClient {
    /// What happens to the account from now on, starting with `initial_session`: its present state.
    ///
    /// The session beside an event is nil when no token can be issued: the account is signed out, or its token has
    /// expired while the provider cannot be reached (then ``Account/isStale`` is true and the user is still signed in).
    /// When the daemon restarts, the sequence reconnects, continues after the last event it saw, and gives
    /// `initial_session` again. It ends when its consumer stops.
    ///
    /// It throws only errors that waiting does not change: `account_not_found`, `policy_denied`, `foreign_server`.
    public func authStateChanges(_ account: String) -> AuthStateChanges {
        AuthStateChanges(account: account, application: application, socket: socket)
    }
}

/// Follows the stream of events on a thread of its own, and reconnects after every break.
struct EventPump: Sendable {
    let account: String
    let application: String
    let socket: String?
    let interruption: Interruption
    /// The first pause before connecting again; doubles with each failure, up to ``longestPause``.
    var pause: Duration = .milliseconds(200)
    var longestPause: Duration = .seconds(10)

    func run(_ deliver: (Result<AuthStateChanges.Element, RingbackError>) -> Void) {
        var lastID: String?
        var failures = 0
        while !interruption.isInterrupted {
            do throws(RingbackError) {
                try follow(&lastID, &failures, deliver)
            } catch {
                // A consumer that has stopped gets no error.
                if error.kind == .cancelled || interruption.isInterrupted { return }
                if EventPump.isFinal(error) { return deliver(.failure(error)) }
            }
            // Half of the pause is random, so that not every app on the machine reconnects in the same instant.
            let longest = min(longestPause, pause * (1 << min(failures, 10)))
            failures += 1
            if interruption.wait(atMost: longest * Double.random(in: 0.5...1)) { return }
        }
    }

    private func follow(
        _ lastID: inout String?, _ failures: inout Int,
        _ deliver: (Result<AuthStateChanges.Element, RingbackError>) -> Void
    ) throws(RingbackError) {
        try RequestTarget.checkAccount(account)
        let calls = BrokerCalls(
            socket: try SocketPlace.path(stated: socket), application: application, interruption: interruption)
        let events = try calls.openEvents(account: account, lastEventID: lastID)
        while let event = try events.next() {
            failures = 0
            if let id = event.id { lastID = id }
            guard let data = try? JSON(parsing: event.data.utf8), data["account"]?.string == account else { continue }
            let state = Account.State(rawValue: data["state"]?.string ?? "")
            var session: Session?
            if state.hasSession {
                var request = SessionRequest(account: account)
                request.include = "user"
                session = try? Session(reading: try calls.session(request))
                session?.endsAt = WallInstant(data["ends_at"])
            }
            if interruption.isInterrupted { return }
            deliver(.success((AuthEvent(rawValue: event.name), session)))
        }
    }

    /// True for an error that waiting does not change.
    static func isFinal(_ error: RingbackError) -> Bool {
        switch error.kind {
        case .accountNotFound, .policyDenied, .foreignServer: true
        default: false
        }
    }
}
