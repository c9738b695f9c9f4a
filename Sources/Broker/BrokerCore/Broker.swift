public import RingbackBase
public import SessionVault

/// The broker: sign-ins become sessions, sessions become tokens. A value that joins the parts; it holds nothing itself.
public struct Broker: Sendable {
    public let callbackReceiver: CallbackReceiver
    let sessionManager: SessionManager
    let flowRegistry: FlowRegistry
    let revocations: Revocations

    public init(
        vault: any Vault, http: any HTTPClient, callbackReceiver: CallbackReceiver, work: Work = Work(),
        clock: BrokerClock = .system, firstEvent: UInt64? = nil,
        record: @escaping @Sendable (BrokerFact) -> Void = { _ in }
    ) {
        let tools = ProviderTools(http: http, vault: vault, work: work, clock: clock, record: record)
        self.callbackReceiver = callbackReceiver
        sessionManager = SessionManager(tools: tools, bus: EventBus(from: firstEvent))
        revocations = Revocations(sessionManager: sessionManager)
        flowRegistry = FlowRegistry(callbackReceiver: callbackReceiver, sessionManager: sessionManager)
    }

    public var bus: EventBus { sessionManager.bus }
    public var vault: any Vault { tools.vault }
    var tools: ProviderTools { sessionManager.tools }
    nonisolated var work: Work { tools.work }

    /// Starts what outlives a call, such as what is to be done at the end of a connection.
    public nonisolated func inBackground(_ action: @escaping @Sendable () async -> Void) { work.start(action) }
    /// As ``inBackground(_:)``, for what mostly waits: the end of the daemon cancels it.
    public nonisolated func waitInBackground(_ action: @escaping @Sendable () async -> Void) { work.startTimer(action) }
    var clock: BrokerClock { tools.clock }
    var record: @Sendable (BrokerFact) -> Void { tools.record }
    public var signInContext: SignInContext { SignInContext(broker: self) }
    public var snapshot: SessionSnapshot { sessionManager.snapshot }

    // MARK: Life

    /// Takes over the configuration's accounts, at start and at every reload.
    ///
    /// - Parameter unchanged: accounts whose settings are those of the last call.
    public func configure(_ accounts: [Account], unchanged: Set<AccountName> = []) async {
        await tools.configurationChanged()
        for name in await sessionManager.configure(accounts, unchanged: unchanged) { await flowRegistry.cancel(name) }
        await revocations.reload()
    }

    /// Refreshes sessions before they expire and runs every other scheduled task, until it is cancelled.
    public func keepFresh() async {
        _ = await sessionManager.firstOpening.wait()
        work.startTimer { for await slot in vault.changes { await changedElsewhere(slot) } }
        while !Task.isCancelled {
            let (pause, signal) = await sessionManager.runDueTasks()
            let rest = await revocations.runDue()
            _ = await signal.wait(atMost: min(pause, rest))
        }
    }

    private func changedElsewhere(_ slot: VaultSlot?) async {
        if await vault.keptMore() { await revocations.reload() }
        await sessionManager.changedElsewhere(slot)
    }

    /// The network is back: what failed without it is tried again at once.
    public func networkReturned() async { await sessionManager.networkReturned() }

    /// The vault's key source may be available now. If opening the vault failed before, it is tried again.
    public func keySourceChanged() async { await sessionManager.keySourceChanged() }

    /// Lets changes under way finish, so that no rotated refresh token is lost.
    public func drain(atMost bound: Duration) async {
        await sessionManager.saveEverything()
        for closed in await sessionManager.endEphemeral() {
            work.start { [tools] in await closed.revokeOnce(with: tools) }
        }
        await work.drain(atMost: bound)
    }

    /// The time by the broker's clock: what its instants are to be compared with.
    public var now: WallInstant { clock.wallInstant }

    /// When a token expires, and how long it is still valid in whole seconds; nil if the provider states no lifetime.
    public func expiry(of token: AccessToken) -> (at: WallInstant, remaining: Duration)? {
        token.expiry.map { ($0.wall(by: clock), $0.remaining(at: clock.bootInstant)) }
    }

    // MARK: Sessions

    public func session(_ name: AccountName, _ query: SessionQuery) async throws(BrokerError) -> IssuedToken {
        try await sessionManager.issuedToken(name, query)
    }

    /// A token; if the account is signed out, a sign-in is started or joined and waited for. No page is opened here:
    /// the program that shows the flow to the user does that. A user who has just declined is not asked again.
    public func sessionAfterSignIn(
        _ name: AccountName, _ query: SessionQuery
    ) async throws(BrokerError) -> IssuedToken {
        let end = ContinuousClock.now + query.timeout
        do {
            return try await sessionManager.issuedToken(name, query)
        } catch {
            switch error {
            case .signInRequired, .sessionRanOut, .sessionExpired, .refreshRefused: break
            default: throw error
            }
        }
        let user = try await sessionManager.account(name).kind.upstream ?? name
        let flow: FlowView
        if let pending = await flowRegistry.pending(user), !pending.changesUser {
            flow = pending
        } else if await flowRegistry.wasRefused(user) {
            throw .signInRequired(user)
        } else {
            flow = try await signIn(user, SignInRequest(), isInterested: false, waitingAtMost: end - .now).flow
        }
        // A program that asked for this sign-in has shown its page to the user, or will.
        if await !flowRegistry.isAskedFor(flow.id) { record(.signInWanted(user, by: query.program)) }
        var rest = query
        rest.timeout = max(end - .now, .zero)
        let status = try await flowRegistry.view(flow.id, waiting: rest.timeout).status
        rest.timeout = max(end - .now, .zero)
        switch status {
        case .completed: return try await sessionManager.issuedToken(name, rest)
        case .pending: throw .timedOut
        case .failed(let error), .expired(let error): throw error
        case .cancelled: throw .flowCancelled(.stated("The sign-in of \(user) was cancelled."))
        }
    }

    /// Refreshes on demand.
    public func refresh(
        _ name: AccountName, of query: SessionQuery = SessionQuery(), isForced: Bool = false, rejected: [UInt8]? = nil
    ) async throws(BrokerError) -> AccountView {
        try await sessionManager.refresh(name, query, isForced: isForced, rejected: rejected)
        return try await account(name)
    }

    /// How long a sign-out waits for the revocation, which continues after that.
    private static let revocationWait: Duration = .seconds(5)

    /// Ends the session here, and tells the provider. Also delivers a pending revocation of the account's former
    /// session.
    public func signOut(_ name: AccountName, endingAll: Bool = false) async throws(BrokerError) -> SignedOut {
        // The provider is told even if the caller disconnects while this waits for a refresh.
        let ending = work.attempt { () throws(BrokerError) in
            await flowRegistry.endChange(of: name)
            let closing = try await sessionManager.close(name, endingAll: endingAll)
            let told = closing.closed.map { closed in work.start { await revocations.deliver(closed) } }
            let earlier = work.start {
                _ = await told?.wait()
                await revocations.retry(name, besides: closing.closed?.retirement)
            }
            return (closing, told, earlier)
        }
        let (closing, told, earlier) = try await ending.get()
        let end = ContinuousClock.now + Broker.revocationWait
        var outcome: RevocationState?
        if let told { outcome = await told.wait(atMost: Broker.revocationWait) ?? .pending }
        _ = await earlier.wait(atMost: max(end - .now, .zero))
        return SignedOut(
            account: try await account(name), hadSession: closing.hadSession,
            isRevocationPending: await revocations.counts()[name] != nil, revocation: outcome,
            leftover: outcome == .revoked ? nil : closing.closed.map { SignedOut.Leftover($0.session, by: clock) })
    }

    /// Forgets which users have signed in to an account that is to be removed.
    public func forgetUsers(of name: AccountName) async throws(BrokerError) {
        let slot = try await sessionManager.account(name).slot.ofUsers
        try await BrokerError.mapping { () throws(VaultError) in try await vault.remove(slot) }
    }

    // MARK: Flows

    /// Starts a sign-in that is a flow, or joins an equal one. `bound` limits the wait until there is a flow.
    public func signIn(
        _ name: AccountName, _ request: SignInRequest, isInterested: Bool = true,
        waitingAtMost bound: Duration = .seconds(90)
    ) async throws(BrokerError) -> (flow: FlowView, isNew: Bool) {
        let start = try await begin(name, request, isInterested: isInterested, waitingAtMost: bound)
        guard let flow = start.flow else {
            throw .methodUnsupported(.stated("A sign-in of \(name) by \(request.method) is done at once."))
        }
        return (flow, start.isNew)
    }

    /// Starts a sign-in, or joins an equal one that is pending. The flow is nil if the sign-in was done at once; then
    /// the account has its session. A caller with `isInterested` gets an address of its own for a program to open.
    public func begin(
        _ name: AccountName, _ request: SignInRequest, isInterested: Bool = true,
        waitingAtMost bound: Duration = .seconds(90)
    ) async throws(BrokerError) -> (flow: FlowView?, isNew: Bool) {
        let start = try await startOrJoin(name, request, isInterested: isInterested, waitingAtMost: bound)
        guard isInterested, let flow = start.flow else { return start }
        return (await withOpenURL(flow), start.isNew)
    }

    private func startOrJoin(
        _ name: AccountName, _ request: SignInRequest, isInterested: Bool, waitingAtMost bound: Duration
    ) async throws(BrokerError) -> (flow: FlowView?, isNew: Bool) {
        let account = try await sessionManager.account(name)
        let request = try account.provider(with: tools).check(request)
        _ = try request.atCallbackPort(account)
        guard account.kind.needsSignIn else {
            // There is nothing to do: the configuration made the session.
            try await sessionManager.admitsSession(name)
            if let error = await account.absenceOfUpstream(by: sessionManager) { throw error }
            return (nil, false)
        }
        switch try await flowRegistry.admit(name, request, isInterested: isInterested) {
        case .existing(let flow):
            return (try await openable(flow, isInterested: isInterested, waitingAtMost: bound), false)
        case .joining(let start): return (try await started(start, bound, isInterested), false)
        case .begin(let start):
            if !request.concernsHeldUser { await sessionManager.clearError(name) }
            recordChoice(name, request, account)
            // The flow belongs to all who will join it, so it does not end with this caller.
            work.start {
                let began = clock.bootInstant
                do throws(BrokerError) {
                    // Read again: the account may have changed before the place was reserved, and such a change does
                    // not cancel this sign-in.
                    let account = try request.atCallbackPort(try await sessionManager.account(name))
                    switch try await prepare(account, request) {
                    case .flow(let awaited, let timeout, let limit):
                        let flow = Flow(
                            awaited, account: account, request: request, timeout: timeout, atMost: limit, by: clock)
                        guard await flowRegistry.begin(flow, fulfilling: start) else { return await close(flow) }
                        if awaited.isAccompanied {
                            work.startTimer { await account.provider(with: tools).accompany(flow, in: signInContext) }
                        }
                    case .done:
                        recordDirect(name, request, since: began, .completed, nil)
                        await flowRegistry.conclude(name, with: nil, fulfilling: start)
                    }
                } catch {
                    await reportFailure(of: error, refusing: request, of: name, since: began)
                    await flowRegistry.conclude(name, with: error, fulfilling: start)
                }
            }
            return (try await started(start, bound, isInterested), true)
        }
    }

    private func prepare(_ account: Account, _ request: SignInRequest) async throws(BrokerError) -> Beginning {
        try await sessionManager.admitsSession(account.name)
        return try await account.provider(with: tools).begin(request, in: signInContext)
    }

    /// Waits until there is a flow. A caller that disconnects or gives up before that never learns the flow's id and
    /// could not cancel it, so its interest is cancelled here.
    private func started(
        _ start: Promise<Result<FlowView?, BrokerError>>, _ bound: Duration, _ isInterested: Bool
    ) async throws(BrokerError) -> FlowView? {
        if let result = await start.wait(atMost: max(bound, .zero)) { return try result.get() }
        if isInterested {
            work.start {
                guard case .success(let flow?)? = await start.wait() else { return }
                _ = try? await flowRegistry.cancel(flow.id, isForAll: false)
            }
        }
        throw .endOfWait
    }

    // MARK: Records

    /// Records how the user chose to sign in. A change of the user is not recorded. A sign-in that is done at once has
    /// no flow that would record its start, so that is recorded here, too.
    private func recordChoice(_ name: AccountName, _ request: SignInRequest, _ account: Account) {
        guard !request.changesUser else { return }
        record(.signInChosen(name, way: request.way ?? account.provider))
        if request.startsAtOnce { record(.signInStarted(name, method: request.method)) }
    }

    /// Records a sign-in that has no flow: it was done at once, or failed before there was one.
    func recordDirect(
        _ name: AccountName, _ request: SignInRequest, since began: BootInstant, _ outcome: BrokerFact.Outcome,
        _ error: BrokerError?
    ) {
        guard !request.changesUser else { return }
        if !request.startsAtOnce { record(.signInStarted(name, method: request.method)) }
        record(
            .signInEnded(name, method: request.method, outcome, duration: clock.bootInstant - began, error: error))
    }

    public func accounts() async -> [AccountView] {
        for name in await sessionManager.namesWithUnusableSetting { await recheckSetting(name) }
        return await sessionManager.views(with: await flowRegistry.pending(), await revocations.undelivered())
    }

    public func account(_ name: AccountName) async throws(BrokerError) -> AccountView {
        await recheckSetting(name)
        let revocation = await revocations.undelivered()[name]
        return try await sessionManager.view(name, flow: await flowRegistry.pending(name), revocation)
    }

    /// Clears the account's problem if it is a setting that can be used now.
    private func recheckSetting(_ name: AccountName) async {
        guard let lane = await sessionManager.lanes[name], case .unusableSetting(let setting)? = lane.state.problem,
            await lane.account.kind.isUsable(setting)
        else { return }
        await sessionManager.take(.settingFixed(setting), lane.id)
    }

    /// The only account of an issuer, among `shown` if given. Throws if there is none or more than one.
    public func account(issuer: String, among shown: [AccountName]? = nil) async throws(BrokerError) -> AccountName {
        let names = await sessionManager.names(issuer: issuer).filter { shown?.contains($0) ?? true }
        guard let name = names.first else { throw .accountNotFound(issuer) }
        guard names.count == 1 else {
            let list = names.map(\.rawValue).joined(separator: ", ")
            throw .conflict(.stated("Several accounts have this issuer: \(list). Name one."))
        }
        return name
    }
}

extension SignInRequest {
    /// Reads the request's method as one of the methods of a kind of account.
    ///
    /// - Throws: `methodUnsupported` for a method that the kind does not have.
    public func readMethod<Method: RawRepresentable<String>>(
        offering offered: [Method], of account: Account
    ) throws(BrokerError) -> Method {
        guard let known = Method(rawValue: method.rawValue) else {
            let list = offered.map(\.rawValue).joined(separator: ", ")
            throw .methodUnsupported(
                .stated("\(account.name) has no sign-in method “\(method)”. It has: \(list)."))
        }
        return known
    }

    /// Checks the request's authorization parameters, before any request is sent to the provider.
    public func checkParameters(reserved: Set<String>, of account: Account) throws(BrokerError) {
        var names = Set(account.authorizationParameters.map(\.0))
        for (name, _) in parameters {
            guard !reserved.contains(name) else {
                throw .invalid(field: "params.\(name)", reason: .stated("Ringback sets this parameter itself."))
            }
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .invalid(
                    field: "params.\(name)",
                    reason: .stated("it has no name, or the account's configuration sets it."))
            }
        }
    }
}

extension Broker {
    /// Subscribes to events. First come the accounts as they are now, then the remembered events after `lastSeen`, then
    /// what happens from now on. Waits until the accounts are loaded. As long as `process` listens, a caller counts as
    /// waiting for the flows that it asked for.
    public func events(
        of name: AccountName?, after lastSeen: UInt64?, process: Int32? = nil, origin: ProgramOrigin? = nil
    ) async throws(BrokerError) -> (initial: [BrokerEvent], live: EventSubscription) {
        let names = if let name { [try await sessionManager.account(name).name] } else { await sessionManager.names }
        let live = bus.subscribe(to: name, after: lastSeen, process: process, origin: origin)
        var initial: [BrokerEvent] = []
        for name in names {
            try? await sessionManager.ready(name)
            guard var view = try? await account(name) else { continue }
            if view.state == .loading {
                // The account's event follows when it is loaded, which may have happened just now.
                live.awaitInitial(name)
                guard let current = try? await account(name), current.state != .loading, live.stopAwaiting(name) else {
                    continue
                }
                view = current
            }
            initial.append(
                BrokerEvent(
                    kind: .initialSession, account: name, state: view.state, subject: view.subject, user: view.user,
                    expiresAt: view.expiresAt, error: view.error, at: clock.wallInstant))
        }
        return (initial, live)
    }

    public func stopListening(_ subscription: EventSubscription) { bus.remove(subscription) }
}
