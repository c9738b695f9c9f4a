internal import RingbackAPI
import RingbackBase

/// Ringback for apps: sessions, sign-ins and their events, over the daemon's Unix socket. Every call has a time limit,
/// runs outside the threads that tasks share, and ends with `cancelled` when its task is cancelled.
public struct BrokerClient: Sendable {
    public enum SignIn: Sendable {
        /// It fails with `sign_in_required`.
        case never
        /// It starts or joins a browser flow, opens the account's browser and waits for the end. It fails with
        /// ``Flow/openURLError`` if there is no address that a browser may be started with.
        case browser
        /// As ``browser``, but the app shows the URL itself.
        case handler(@Sendable (Flow) async -> Void)
    }

    public enum SignOutScope: String, Sendable {
        case local
        case global
        /// Every session but this one.
        case others
    }

    let application: String
    let socket: String?

    /// `application` is the app's name, as it is shown to the user; it is not checked. The default of `socket` is
    /// `RINGBACK_SOCK`, or the place in `XDG_RUNTIME_DIR`.
    public init(application: String, socket: String? = nil) {
        self.application = application
        self.socket = socket
    }

    /// The account's session, refreshed first if need be.
    ///
    /// - Parameters:
    ///   - minValid: seconds that the token must still be valid (60 unless stated). A caller that names none also gets
    ///     a token that expires sooner, while the provider cannot be reached.
    ///   - timeout: seconds to wait at most (30 unless stated).
    ///   - scope: asks for a token downscoped to these scopes; space-separated. Likewise `audience` and `resource` (RFC
    ///     8707).
    ///   - subject: fails with `state_conflict` if the session has another subject.
    ///   - signIn: what to do without a session. A sign-in's wait ends with the flow, not with `timeout`.
    /// - Throws: `sign_in_required`, `session_expired`, `account_not_found`, `provider_unreachable`, `rate_limited`,
    ///   `vault_unreachable`, `timeout`, `no_daemon` and others: see ``RingbackError``.
    public func session(
        _ account: String, minValid: Int? = nil, timeout: Int? = nil, scope: String? = nil, audience: String? = nil,
        resource: String? = nil, subject: String? = nil, signIn: SignIn = .never
    ) async throws(RingbackError) -> Session {
        let request = SessionRequest(
            account: account, minValid: minValid, timeout: timeout, scope: scope, audience: audience,
            resource: resource, subject: subject, include: "user")
        do throws(RingbackError) { return try await session(request) } catch {
            guard error.recovery == .signIn else { throw error }
            switch signIn {
            case .never: throw error
            case .browser:
                let browser = (try? await self.account(account))?.browser
                try await signInAndWait(account) { flow throws(RingbackError) in
                    // Never the page's own address: every user of the machine can read what a browser is started with.
                    guard let url = flow.openURL else { throw flow.openURLError ?? .missing("open_url", in: "flow") }
                    // The user's other tools see the flow too: it can be finished without this browser.
                    _ = Browser.open(url, in: browser)
                }
            case .handler(let show): try await signInAndWait(account, show)
            }
            return try await session(request)
        }
    }

    /// Starts a browser sign-in, or joins the pending one. Open ``Flow/openURL``, then ``wait(for:)``.
    ///
    /// - Parameters:
    ///   - timeout: the flow's seconds, if not the configured ones.
    ///   - switchSubject: allow another user than the one whose session is held.
    ///   - replace: cancel a different sign-in of the account that is pending, in place of `state_conflict`.
    public func signIn(
        _ account: String, timeout: Int? = nil, switchSubject: Bool = false, replace: Bool = false
    ) async throws(RingbackError) -> Flow {
        let body: JSONObject = [
            "method": "browser", "timeout": timeout, "switch_subject": switchSubject ? true : nil,
            "replace": replace ? true : nil,
        ]
        return try await run { calls throws(RingbackError) in
            guard case .flow(let flow, _) = try calls.signIn(account, body) else {
                throw RingbackError(.badResponse, "The daemon began no browser sign-in.")
            }
            return flow
        }
    }

    /// The sign-ins that the daemon keeps, oldest first: pending ones, and those that ended in the last 10 minutes.
    public func flows() async throws(RingbackError) -> [Flow] {
        try await run { calls throws(RingbackError) in try calls.flows() }
    }

    /// Waits until the sign-in has ended. Cancelling the task means that this caller no longer waits for the flow.
    /// Throws `access_denied`, `flow_expired`, `cancelled`, or why else there is no session.
    @discardableResult
    public func wait(for flow: Flow) async throws(RingbackError) -> Account {
        try await run { calls throws(RingbackError) in try calls.finish(flow) }
    }

    /// Opens the page of a pending sign-in in the account's browser, which the daemon starts. Use this where the app
    /// cannot start a browser itself.
    ///
    /// - Parameter activationToken: the desktop's token by which the window comes to the front.
    /// - Throws: `state_conflict` if the sign-in has no page, or no browser could be started (`browser_not_started`).
    @discardableResult
    public func openPage(of flow: Flow, activationToken: String? = nil) async throws(RingbackError) -> Flow {
        try await run { calls throws(RingbackError) in
            let body: JSONObject = ["activation_token": activationToken]
            let answer = try calls.call(.openFlow, [flow.id], body: .object(body))
            guard let opened = Flow(reading: answer) else { throw .missing("id", in: "flow") }
            return opened
        }
    }

    /// This caller no longer waits for the sign-in. If no other caller waits, the flow is cancelled.
    public func cancel(_ flow: Flow) async throws(RingbackError) {
        try await run { calls throws(RingbackError) in try calls.cancel(flow: flow.id) }
    }

    /// Ends the account's session here, and tells the provider. Without a session it changes nothing.
    @discardableResult
    public func signOut(_ account: String, scope: SignOutScope = .local) async throws(RingbackError) -> Account {
        try await run { calls throws(RingbackError) in
            try Account(reading: try calls.call(.signOut, [account], query: [("scope", scope.rawValue)]))
        }
    }

    /// Refreshes the account's tokens. Unless `force`, takes the result of a refresh that runs or has just ended.
    @discardableResult
    public func refresh(_ account: String, force: Bool = false) async throws(RingbackError) -> Account {
        try await run { calls throws(RingbackError) in
            try Account(reading: try calls.call(.refresh, [account], body: force ? ["force": true] : [:]))
        }
    }

    /// Every configured account, sorted by name.
    public func accounts() async throws(RingbackError) -> [Account] {
        try await run { calls throws(RingbackError) in
            try calls.call(.listAccounts).list("accounts", Account.init(reading:))
        }
    }

    public func account(_ name: String) async throws(RingbackError) -> Account {
        try await run { calls throws(RingbackError) in try Account(reading: try calls.account(name)) }
    }

    public func status() async throws(RingbackError) -> DaemonStatus {
        try await run { calls throws(RingbackError) in try DaemonStatus(reading: try calls.call(.getStatus)) }
    }

    private func signInAndWait(
        _ account: String, _ show: @Sendable (Flow) async throws(RingbackError) -> Void
    ) async throws(RingbackError) {
        let flow = try await signIn(account)
        do throws(RingbackError) { try await show(flow) } catch {
            try? await cancel(flow)
            throw error
        }
        try await wait(for: flow)
    }

    private func session(_ request: SessionRequest) async throws(RingbackError) -> Session {
        try await run { calls throws(RingbackError) in try Session(reading: try calls.session(request)) }
    }

    func project<Value: Sendable>(
        _ endpoint: Endpoint, _ account: String, _ values: [String] = [], body: JSONObject? = nil,
        reading read: @escaping @Sendable (JSON) throws(RingbackError) -> Value
    ) async throws(RingbackError) -> Value {
        try await run { calls throws(RingbackError) in
            try read(try calls.project(endpoint, account, values, body: body))
        }
    }

    func run<Value: Sendable>(
        _ work: @escaping @Sendable (BrokerCalls) throws(RingbackError) -> Value
    ) async throws(RingbackError) -> Value {
        try await Blocking.run { interruption throws(RingbackError) in try work(try calls(interruption)) }
    }

    func calls(_ interruption: Interruption) throws(RingbackError) -> BrokerCalls {
        BrokerCalls(
            socket: try SocketPlace.path(stated: socket), application: application, interruption: interruption)
    }
}
