public import RingbackBase

public struct SignInContext: Sendable {
    let broker: Broker

    public var tools: ProviderTools { broker.tools }
    public var sessions: SessionManager { broker.sessionManager }

    /// How many signed-out sessions of the account have not been revoked at their providers yet.
    public func pendingRevocations(of name: AccountName) async -> Int {
        await broker.revocations.counts()[name] ?? 0
    }

    // MARK: Redirect URIs

    /// Makes the redirect URI of a configured template (nil: the default) reachable, as it is to be sent.
    public func openRedirect(_ template: String?, of account: AccountName) async throws(BrokerError) -> String {
        try await broker.callbackReceiver.open(template, account)
    }

    /// Serves pages of the provider's own, and returns their address. Closed with ``closeRedirect(_:of:)``.
    public func openSite(
        _ name: String, of account: AccountName, serving site: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws(BrokerError) -> String {
        guard let address = try await broker.callbackReceiver.openSite(name, account, site) else {
            throw .methodUnsupported(.stated("There is no listener for a page here."))
        }
        return address
    }

    public func closeRedirect(_ redirectURI: String, of account: AccountName) async {
        await broker.callbackReceiver.close(redirectURI, account)
    }

    /// Throws if the callbacks of a new flow could not be told apart from those of a pending flow.
    public func refuseSecondKeyless(at redirectURI: String, of account: AccountName) async throws(BrokerError) {
        try await broker.flowRegistry.refuseSecondKeyless(at: redirectURI, for: account)
    }

    // MARK: Sessions

    /// Throws if the session of a sign-in could not be stored. To be called before a request that cannot be repeated.
    public func admitSession(_ account: AccountName) async throws(BrokerError) {
        try await broker.sessionManager.admitsSession(account)
    }

    public func open(
        _ session: Session, of account: Account, _ opening: SessionOpening
    ) async throws(BrokerError) {
        try await broker.open(session, for: account, opening)
    }

    /// Takes over a session that is made by presenting a refresh token, see
    /// ``SessionManager/open(for:isEphemeral:subject:made:)``.
    public func open(
        of account: Account, isEphemeral: Bool, subject: String?,
        made make: @escaping @Sendable (RefreshAttempt) async throws(BrokerError) -> (Session, SessionOpening)
    ) async throws(BrokerError) {
        defer { broker.endReplaced() }
        try await broker.sessionManager.open(for: account, isEphemeral: isEphemeral, subject: subject, made: make)
        await broker.flowRegistry.noteSignIn(of: account.name)
    }

    public func endUnheld(_ session: Session, of account: Account) { broker.endUnheld(session, of: account) }

    // MARK: Other accounts

    /// True if a user is signed in to another account of the account's provider.
    public func hasSignedInNeighbour(_ account: Account) async -> Bool {
        await broker.sessionManager.lanes.hasSignedInNeighbour(account)
    }

    public func require(_ query: SessionQuery, of account: AccountName) async throws(BrokerError) {
        _ = try await broker.session(account, query)
    }

    /// Starts or joins a sign-in of another account, and keeps it wanted until ``cancel(_:)``.
    public func signIn(_ account: AccountName, _ request: SignInRequest) async throws(BrokerError) -> FlowView {
        try await broker.signIn(account, request).flow
    }

    // MARK: Flows

    /// What the account's last flow awaited, if it was cancelled or expired and nothing had come from its page.
    public func abandonedPage(of name: AccountName) async -> (any AwaitedSignIn)? {
        await broker.flowRegistry.abandonedPage(of: name)
    }

    public func isPending(_ flow: String) async -> Bool { await broker.flowRegistry.isPending(flow) }

    /// A flow once it has left `pending`, or as it is after the bound; nil if it is not remembered.
    public func view(_ flow: String, waiting bound: Duration) async -> FlowView? {
        try? await broker.flowRegistry.view(flow, waiting: bound)
    }

    /// Adds a request whose callback completes the flow. False if that has ended: then nothing will arrive.
    public func add(_ request: any AwaitedSignIn, to flow: Flow) async -> Bool {
        if await broker.flowRegistry.add(request, to: flow.id) { return true }
        await closeRedirect(request.redirectURI, of: flow.account.name)
        return false
    }

    public func finish(_ flow: Flow, as status: FlowView.Status) async {
        await broker.flowRegistry.finish(flow.id, as: status)
    }

    public func cancel(_ flow: String) async { _ = try? await broker.flowRegistry.cancel(flow, isForAll: false) }

    /// Redeems a proof that no caller sent, such as a poll's. Shutdown waits for it. Nil if the flow cannot be claimed.
    public func redeem(_ proof: Proof, of flow: Flow) async -> CallbackVerdict? {
        let redeeming = broker.work.start { () -> CallbackVerdict? in
            guard case .claimed(_, let promise) = await broker.flowRegistry.take(flow.id, []) else { return nil }
            let verdict = await Redeemer(broker: broker).redeem(proof, of: flow)
            promise.fulfil(verdict)
            return verdict
        }
        return await redeeming.wait() ?? nil
    }
}
