internal import SessionVault

/// The sessions of every account, and the order in which they change: each has one lane, through which changes go one
/// at a time. A change may suspend, and no other touches its account meanwhile. Reads never queue. The vault is written
/// first, then memory, then the event is posted.
public actor SessionManager {
    /// Distinguishes a lane from the lane that replaced it when the account's binding changed.
    struct LaneID: Sendable, Hashable {
        let account: AccountName
        let number: UInt64
    }

    struct Lane {
        var account: Account
        let id: LaneID
        var state: LaneState
        /// Fulfilled once the vault has been read; replaced when it is locked.
        var loaded = Promise<Void>()
    }

    private(set) var lanes = Lanes()
    private(set) var redirectURIs: Set<String> = []
    /// The last change of each account. The next one waits for it, even if the lane has been replaced.
    private(set) var tails: [AccountName: Promise<Void>] = [:]
    private var laneCount: UInt64 = 0
    var refusedAtOnce: [AccountName: BootInstant] = [:]  // See `isRefusedAtOnce`.
    /// Sessions that are loaded at start cause no `signed_in` event. Sessions that come back with a reload do.
    private var hasStarted = false
    var vaultState = VaultState()
    var unlockAttempts = UnlockAttempts()
    let firstOpening = Promise<Void>()
    var detached = DetachedSessions()
    private(set) var vaultTurn: Promise<Void>?
    var schedule = Schedule()
    /// The refreshes that wait for another host. They hold no lane, so that a sign-out or a sign-in need not wait.
    var waitingRefreshes: [AccountName: [QueuedRefresh]] = [:]
    let bus: EventBus
    let tools: ProviderTools
    nonisolated let snapshot: SessionSnapshot
    nonisolated var vault: any Vault { tools.vault }
    nonisolated var store: SessionStore { SessionStore(vault: tools.vault, clock: tools.clock) }
    nonisolated var clock: BrokerClock { tools.clock }
    nonisolated var work: Work { tools.work }
    nonisolated var record: @Sendable (BrokerFact) -> Void { tools.record }

    /// How long an issued token is valid at least if the caller names no `min_valid`.
    static let defaultMinValid: Duration = .seconds(60)
    /// How long after a failed read of the vault the next one is tried.
    private static let loadRetryInterval: Duration = .seconds(5)

    init(tools: ProviderTools, bus: EventBus) {
        self.tools = tools
        self.bus = bus
        snapshot = SessionSnapshot(clock: tools.clock)
    }

    // MARK: Accounts

    /// Takes over the configuration's accounts. A session whose binding is no longer an account's is set aside in the
    /// vault, and is there again when the configuration is. Returns the accounts whose flows are no longer valid.
    func configure(_ accounts: [Account], unchanged: Set<AccountName> = []) -> [AccountName] {
        var changed: [AccountName] = []
        redirectURIs = Set(accounts.compactMap(\.redirectURI))
        let names = Set(accounts.map(\.name))
        for name in lanes.keys where !names.contains(name) {
            changed.append(name)
            setAside(name)
        }
        for account in accounts {
            let name = account.name
            if let known = lanes[name]?.account, known.bindingID != account.bindingID {
                changed.append(name)
                setAside(name)
            }
            if let lane = lanes[name] {
                for time in lane.account.sessionWarnings where !account.sessionWarnings.contains(time) {
                    schedule.remove(.warn(name, before: time))
                }
                lanes[name]?.account = account
                // The reload may have fixed what the provider refused the service for.
                if lane.state.needsConfigurationChange { take(.configurationFixed, lane.id) } else { plan(name) }
                take(.reloaded(isChanged: !unchanged.contains(name)), lane.id)
            } else {
                laneCount += 1
                lanes[name] = Lane(
                    account: account, id: LaneID(account: name, number: laneCount),
                    state: LaneState(backoff: detached.restoreBackoff(account.slot)))
                if isOpen { load(name, isAfterReload: hasStarted) }
            }
        }
        if !hasStarted {
            // The vault is opened beside the rest of the start. A request for a session waits for it.
            work.start { _ = await self.openVault(passphrase: nil, isAsked: false) }
        }
        hasStarted = true
        return changed
    }

    /// Hides an account's session at once; the vault keeps it. A running refresh saves its result in the old slot, and
    /// finds no lane to put it in.
    private func setAside(_ name: AccountName) {
        guard var lane = lanes[name] else { return }
        lanes[name] = nil
        detached.keep(lane.state, of: lane.account)
        schedule.remove(.load(name))
        let effects = lane.state.take(.replaced, of: name, at: clock.bootInstant)
        for effect in effects { perform(effect, lane) }
        resume(name)
        observer(of: lane.account)?.forget(name)
    }

    // MARK: Outcomes

    func lane(_ id: LaneID) -> Lane? { lanes[id.account].flatMap { $0.id == id ? $0 : nil } }

    /// Tells a lane what happened and does what follows. This is the one place where a continuation that is too late is
    /// recognized: false if the lane does not exist any more, or if the outcome makes no sense in its present state.
    @discardableResult
    func take(_ outcome: LaneState.Outcome, _ id: LaneID) -> Bool {
        guard lanes[id.account]?.id == id else { return false }
        let effects = lanes[id.account]?.state.take(outcome, of: id.account, at: clock.bootInstant) ?? []
        guard !effects.isEmpty, let lane = lanes[id.account] else { return false }
        for effect in effects { perform(effect, lane) }
        return true
    }

    private func perform(_ effect: LaneState.Effect, _ lane: Lane) {
        let name = lane.id.account
        switch effect {
        case .publish: publish(name)
        case .schedule:
            schedule.plan(
                lane.account, lane.state, isServed: lockError == nil, hasUnwritten: detached.hasUnwritten(of: name),
                at: clock.bootInstant)
        case .retryLoading: schedule.set(.load(name), at: clock.bootInstant + SessionManager.loadRetryInterval)
        case .wake: lane.loaded.fulfil(())
        case .record(let fact): record(fact)
        case .post(let kind, let session, let error): post(kind, name, session: session, error: error)
        }
    }

    func publish(_ name: AccountName) {
        guard lockError == nil, let lane = lanes[name], let session = lane.state.visible,
            let token = session.tokens[.own]
        else { return snapshot.publish(nil, for: name) }
        snapshot.publish(IssuedToken(token, of: session, lane.account), for: name)
    }

    func plan(_ name: AccountName) { if let lane = lanes[name] { perform(.schedule, lane) } }

    /// Posts an event. For a `signedOut` event, `session` is the session that has ended.
    func post(
        _ kind: BrokerEvent.Kind, _ name: AccountName, session: Session?, error: BrokerError? = nil,
        endsAt: WallInstant? = nil
    ) {
        if let account = lanes[name]?.account {
            observer(of: account)?.willPost(kind, of: account, session, in: self)
        }
        bus.post(
            BrokerEvent(
                kind: kind, account: name,
                state: session == nil || kind == .signedOut ? .unauthenticated : .authenticated,
                subject: session?.subject,
                // The event of a sign-out has only the subject and no claims of the user.
                user: kind == .signedOut ? nil : session?.user,
                expiresAt: session?.tokens[.own]?.expiry?.wall(by: clock), error: error, endsAt: endsAt,
                at: clock.wallInstant))
        if kind == .signedIn || kind == .signedOut { Dependents(upstream: name).end(by: self) }
    }

    /// The vault was locked: callers that wait from now on wait for the next opening.
    func expectLoading(_ name: AccountName) {
        lanes[name]?.loaded = Promise()
        if let account = lanes[name]?.account { observer(of: account)?.forget(name) }
    }

    // MARK: Parts of a change

    func provider(_ account: Account) -> any SignInProvider { account.provider(with: tools) }

    func observer(of account: Account) -> (any SessionObserver)? { account.kind.observer(with: tools) }

    /// Runs a change in its turn of the account's lane, and waits for it. It goes on if the caller disconnects.
    func inTurn<Value: Sendable>(
        _ name: AccountName,
        _ change: @escaping @Sendable (isolated SessionManager) async throws(BrokerError) -> Value
    ) async throws(BrokerError) -> Value {
        let turn = enqueue(name) { manager -> Result<Value, BrokerError> in
            do throws(BrokerError) {
                return .success(try await change(manager))
            } catch {
                return .failure(error)
            }
        }
        return try await turn.get()
    }

    /// Like ``inTurn(_:_:)``, with further turns for up to half a minute while another host holds the session's lease.
    func inTurns<Value: Sendable>(
        _ name: AccountName,
        _ change: @escaping @Sendable (isolated SessionManager) async throws(BrokerError) -> Value
    ) async throws(BrokerError) -> Value {
        var turns = 0
        while true {
            do throws(BrokerError) {
                return try await inTurn(name, change)
            } catch {
                guard let wait = error.waitForOtherHost, turns < 30 else { throw error }
                turns += 1
                do { try await clock.sleep(min(wait, .seconds(1))) } catch { throw .cancelled }
            }
        }
    }

    /// Puts a change at the end of the account's lane. The change reads the lane when its turn comes, not before.
    @discardableResult
    func enqueue<Value: Sendable>(
        _ name: AccountName, _ change: @escaping @Sendable (isolated SessionManager) async -> Value
    ) -> Promise<Value> { follow(&tails[name], change) }

    /// Opens, closes or rekeys the vault, to its end: a vault never stays half locked.
    func inVaultTurn(
        _ change: @escaping @Sendable (isolated SessionManager) async -> BrokerError?
    ) async -> BrokerError? {
        guard let outcome = await follow(&vaultTurn, change).wait() else { return .cancelled }
        return outcome
    }

    /// Starts a change that begins when the change before it, in the same lane or of the vault, has ended.
    @discardableResult
    private func follow<Value: Sendable>(
        _ last: inout Promise<Void>?, _ change: @escaping @Sendable (isolated SessionManager) async -> Value
    ) -> Promise<Value> {
        let previous = last
        let turn = Promise<Void>()
        last = turn
        return work.start {
            // A change that shutdown cancels still runs in order: two at once would send the same refresh token.
            await previous?.settle()
            let value = await change(self)
            turn.fulfil(())
            return value
        }
    }

    /// Waits until a running sign-out has ended, for an account that the configuration keeps signed in.
    func signOutSettled(_ name: AccountName, atMost bound: Duration) async throws(BrokerError) {
        guard let state = lanes[name]?.state, state.session?.isConfigured == true, state.signOutsInProgress > 0,
            let turn = tails[name]
        else { return }
        guard await turn.wait(atMost: bound) != nil else { throw .endOfWait }
    }

    /// Starts a change that takes a turn of several accounts at once, of which none had a change before.
    func enqueue(inAll names: [AccountName], _ change: @escaping @Sendable (isolated SessionManager) async -> Void) {
        var turn: Promise<Void>?
        follow(&turn, change)
        for name in names { tails[name] = turn }
    }
}
