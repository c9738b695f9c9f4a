internal import Cryptography
internal import RingbackBase
internal import SessionVault

// A refresh from top to bottom: a caller joins the one in the lane or starts one; it has its turn, announces itself to
// the vault, presents a refresh token, stores the rotated one, validates the response and serves its tokens.

private let refreshWait: Duration = .seconds(30)
/// A token that was refused right after its refresh is refreshed again at once, but only once in this time: a server that
/// refuses every token must not cause one refresh after another.
private let refusalRest: Duration = .seconds(60)

/// Reads never queue: they take what is there, or join the refresh in the lane.
extension SessionManager {
    /// A token for a caller: the current one if it is valid long enough, else a refreshed one.
    func issuedToken(_ name: AccountName, _ query: SessionQuery) async throws(BrokerError) -> IssuedToken {
        let account = try account(name)
        try account.kind.check(query, of: account)
        let end = ContinuousClock.now + query.timeout
        try await ready(name, atMost: query.timeout)
        try await signOutSettled(name, atMost: max(end - .now, .zero))
        if let token = try choice(name, query).beforeRefresh() { return token }
        // If the provider renews access tokens but sends no ID token, callers must not cause one refresh after another.
        let recent = lanes[name]?.state.held?.recentRefresh(at: clock.bootInstant)
        if query.kind == .accessToken || recent == nil || recent?.error != nil {
            do throws(BrokerError) {
                try await join(name, query.key, query.allowance, waitingAtMost: max(end - .now, .zero))
            } catch {
                // Read again: the session may have changed during the wait, and its token may have expired.
                guard error != .cancelled, let token = (try? choice(name, query))?.despiteFailure else { throw error }
                return token
            }
        }
        return try choice(name, query).afterRefresh()
    }

    /// Throws if there is no session, or none of the expected subject.
    private func choice(_ name: AccountName, _ query: SessionQuery) throws(BrokerError) -> TokenChoice {
        let (lane, session) = try holding(name)
        if let subject = query.subject, !Session.isSame(subject, session.subject) {
            throw .conflict(.stated("\(name) is signed in as another user than \(subject)."))
        }
        return TokenChoice(query: query, account: lane.account, session: session, now: clock.bootInstant)
    }

    /// Throws during back-off, and if the caller has used up its allowance.
    private func join(
        _ name: AccountName, _ key: TokenKey, _ allowance: Allowance?, waitingAtMost bound: Duration
    ) async throws(BrokerError) {
        if let renewal = lanes[name]?.state.renewal, renewal.running[key] == nil {
            if let error = renewal.backoff.refusal(at: clock.bootInstant) { throw error }
            if let wait = allowance?.take(at: clock.bootInstant) { throw .tooManyAttempts(retryAfter: wait) }
        }
        try await refreshed(name, key, for: allowance == nil ? .needed : .exposed, waitingAtMost: bound)
    }

    /// Starts a refresh or joins the one that runs, and waits for it. An exposed socket's refresh may be refused where the
    /// owner's would not be; then the owner's own follows.
    private func refreshed(
        _ name: AccountName, _ key: TokenKey, for reason: RefreshReason, waitingAtMost bound: Duration
    ) async throws(BrokerError) {
        let end = ContinuousClock.now + bound
        do throws(BrokerError) {
            try await startRefresh(of: name, key, for: reason).get(atMost: bound)
        } catch {
            guard reason != .exposed, case .methodUnsupported(.session(.mayLoseScopes), _) = error
            else { throw error }
            try await startRefresh(of: name, key, for: reason).get(atMost: max(end - .now, .zero))
        }
    }

    /// Nil without a session, or while it is being closed. Throws while the vault is locked.
    public func readable(_ name: AccountName) throws(BrokerError) -> Session? {
        if let lockError { throw lockError }
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        return lane.state.visible
    }

    public func held(_ name: AccountName) -> Session? { (try? readable(name)) ?? nil }

    /// The account's lane and the session in it that readers may see. Throws the reason if there is none.
    func holding(_ name: AccountName) throws(BrokerError) -> (lane: Lane, session: Session) {
        let session = try readable(name)
        guard let lane = lanes[name], let session else { throw absence(of: name) }
        return (lane, session)
    }

    public func absence(of name: AccountName) -> BrokerError {
        lanes[name]?.state.ending(of: name) ?? .signInRequired(name)
    }

    /// Refreshes at the request of a caller (`POST …/refresh`).
    func refresh(
        _ name: AccountName, _ query: SessionQuery = SessionQuery(), isForced: Bool, rejected: [UInt8]?
    ) async throws(BrokerError) {
        try await ready(name)
        let (lane, session) = try holding(name)
        if let rejected, let token = query.token(in: session), Digest.sha256(token.value.revealedBytes()) != rejected {
            return  // It was refreshed since the caller got it.
        }
        guard session.canRenew(query.key, at: clock.bootInstant) else {
            throw .conflict(.session(.notRefreshable(name, advice: lane.account.renewalAdvice)))
        }
        let renewal = lane.state.renewal
        let reason: RefreshReason = query.allowance == nil ? .requested : .exposed
        if renewal.running[query.key] != nil {
            return try await refreshed(name, query.key, for: reason, waitingAtMost: refreshWait)
        }
        let now = clock.bootInstant
        if !isForced, let last = lane.state.held?.recentRefresh(at: now) {
            if let error = last.error { throw error }
            guard rejected != nil, isRefusedAtOnce(name, now) else { return }
        }
        if let error = renewal.backoff.refusalByProvider(at: now) { throw error }
        if let wait = query.allowance?.take(at: now) { throw .tooManyAttempts(retryAfter: wait) }
        try await refreshed(name, query.key, for: reason, waitingAtMost: refreshWait)
    }

    /// The token that the last refresh brought has been refused. True if it may be refreshed already.
    private func isRefusedAtOnce(_ name: AccountName, _ now: BootInstant) -> Bool {
        if let last = refusedAtOnce[name], now - last < refusalRest { return false }
        refusedAtOnce[name] = now
        return true
    }

    func startRefresh(
        of name: AccountName, _ key: TokenKey, for reason: RefreshReason
    ) -> Promise<Result<Void, BrokerError>> {
        guard let lane = lanes[name] else { return Promise(of: .failure(.accountNotFound(name.rawValue))) }
        if let running = lane.state.renewal.running[key] { return running }
        let queued = QueuedRefresh(
            refresh: Refresh(id: lane.id, key: key, reason: reason), seen: lane.state.session?.tokens[key]?.value)
        queue(queued)
        take(.refreshBegan(key, queued.promise), lane.id)
        return queued.promise
    }

    func queue(_ queued: QueuedRefresh) { enqueue(queued.refresh.id.account) { await queued.takeTurn(by: $0) } }
}

/// A refresh that callers can join. While another host is at the session it leaves the lane, and has a turn later.
struct QueuedRefresh: Sendable {
    /// A longer wait for another host is an error: callers get the held token, as long as it is valid.
    static let longestWait: Duration = .seconds(65)

    let refresh: Refresh
    /// The token that was held when the refresh was asked for.
    let seen: Secret?
    let promise = Promise<Result<Void, BrokerError>>()

    func takeTurn(by manager: isolated SessionManager) async {
        let (id, key) = (refresh.id, refresh.key)
        let result = refresh.isDone(since: seen, by: manager) ? .success(()) : await refresh.run(by: manager)
        if let wait = result.failure?.waitForOtherHost, wait <= QueuedRefresh.longestWait, manager.lane(id) != nil {
            manager.waitingRefreshes[id.account, default: []].append(self)
            return manager.schedule.set(.resume(id.account), at: manager.clock.bootInstant + wait)
        }
        manager.take(.refreshEnded(key, result.failure), id)
        promise.fulfil(result)
    }
}

/// A refresh in its turn. It presents the newest refresh token first, stores a rotated one beside its predecessor
/// before it reads the rest of the response, validates that, and then serves it.
struct Refresh: Sendable {
    /// How often another host may have changed the session before the refresh gives up.
    static let mostChanges = 3

    let id: SessionManager.LaneID
    let key: TokenKey
    let reason: RefreshReason

    /// True if an earlier change in the lane or another host has brought another valid token than `seen`.
    func isDone(since seen: Secret?, by manager: isolated SessionManager) -> Bool {
        guard key != .own || seen != nil, manager.lockError == nil, let session = manager.lane(id)?.state.visible,
            session.unvalidated == nil, let token = session.tokens[key]
        else { return false }
        return token.value != seen && token.isValid(at: manager.clock.bootInstant)
    }

    func run(
        by manager: isolated SessionManager, changesLeft: Int = Refresh.mostChanges
    ) async -> Result<Void, BrokerError> {
        if key != .own, let session = manager.lane(id)?.state.visible, needsOwnFirst(session, manager.clock),
            case .failure(let error) = await refreshOwn(by: manager)
        {
            return .failure(error)
        }
        let name = id.account
        guard let lane = manager.lane(id), let session = lane.state.visible else {
            return .failure(.signInRequired(name))
        }
        if let lockError = manager.lockError { return .failure(lockError) }
        // The provider's `Retry-After` may have come while this refresh waited for its turn.
        if let refusal = lane.state.renewal.backoff.refusalByProvider(at: manager.clock.bootInstant) {
            return .failure(refusal)
        }
        let turn = RefreshTurn(lane: lane)
        let renewal: Renewal
        let permit: RefreshPermit
        let tokens: [Secret]
        do throws(BrokerError) {
            let prepared = try await manager.provider(lane.account).renewal(of: session, for: key, because: reason)
            let presents = prepared.presents
            guard let granted = try await turn.announce(presenting: presents.first, by: manager) else {
                return await runAgain(after: session, by: manager, changesLeft: changesLeft)
            }
            (renewal, permit, tokens) = (prepared, granted, granted.others.joined(with: presents, for: key))
        } catch {
            let meaning: RenewalMeaning =
                key == .own || error.isTransient ? .unknown : .requestOnly(isUnchanged: false)
            return .failure(await failed(error, meaning, lane, by: manager))
        }
        manager.record(.refreshStarted(name, reason: reason))
        let result: Result<Void, BrokerError>
        do throws(BrokerError) {
            var asking = session
            asking.downscopedTo = renewal.downscopesTo ?? session.downscopedTo
            var renewed = try await turn.present(tokens, renewal, of: asking, under: permit, by: manager)
            renewed.dropTokens(at: manager.clock.bootInstant, butFor: key)
            result = await turn.serve(renewed, by: manager)
        } catch {
            return .failure(await failed(error, renewal.meaning(error), lane, by: manager))
        }
        // A new refresh token may cover no more than the downscoped token. It is presented for the whole scope at once.
        if key != .own, let session = manager.lane(id)?.state.visible, session.mayHoldDownscopedToken {
            _ = await refreshOwn(by: manager)
        }
        return result
    }

    /// True if the session's own token has to be refreshed before a downscoped one is requested: to see whether the
    /// newest refresh token still has the whole scope, or because the own token would be exchanged and has expired. A
    /// request of an exposed socket waits for the same proof where the refresh token has not changed. An assertion is
    /// given for an ID token, which a refresh may bring.
    private func needsOwnFirst(_ session: Session, _ clock: BrokerClock) -> Bool {
        if session.mayHoldDownscopedToken { return true }
        if key.isAssertion { return session.mayRenewIDToken(at: clock.bootInstant) }
        guard reason == .exposed, !session.refreshTokens.isEmpty else { return false }
        return session.downscopedTo != nil || session.tokens[.own]?.isValid(at: clock.bootInstant) != true
    }

    private func refreshOwn(by manager: isolated SessionManager) async -> Result<Void, BrokerError> {
        await Refresh(id: id, key: .own, reason: .change).run(by: manager)
    }

    private func runAgain(
        after session: Session, by manager: isolated SessionManager, changesLeft: Int
    ) async -> Result<Void, BrokerError> {
        if isDone(since: session.tokens[key]?.value, by: manager) { return .success(()) }
        guard changesLeft > 0 else {
            return .failure(.vaultUnreachable(.session(.heldElsewhere(id.account, wait: .seconds(1)))))
        }
        return await run(by: manager, changesLeft: changesLeft - 1)
    }

    private func failed(
        _ error: BrokerError, _ meaning: RenewalMeaning, _ lane: SessionManager.Lane,
        by manager: isolated SessionManager
    ) async -> BrokerError {
        let (name, turn) = (lane.account.name, RefreshTurn(lane: lane))
        guard manager.lane(id) != nil else { return .signInRequired(name) }
        // The refresh goes on when the other host is ready.
        if let wait = error.waitForOtherHost, wait <= QueuedRefresh.longestWait { return error }
        var error = lane.state.explaining(error, of: name, isOfRequest: key != .own)
        var isOfRequest = false
        switch meaning {
        case .dead(let code, let message) where key == .own:
            if let proof = await turn.proofOfEnd(by: manager) {
                return await manager.end(lane, code, message: message, unheard: proof.unheard)
            }
            error = .vaultUnreachable(.session(.endUncertain(name)))
            await turn.settle(by: manager)
        case .dead:
            // Some providers send this error for a scope without consent. A refresh of the session's own token
            // shows whether the session has ended.
            manager.take(.becameUrgent, id)
            isOfRequest = true
            await turn.settle(by: manager)
        case .unchanged: await turn.settle(by: manager)
        case .requestOnly(let isUnchanged):
            isOfRequest = true
            if isUnchanged { await turn.settle(by: manager) }
        case .maybeRotated: manager.take(.becameUrgent, id)
        case .otherSession, .unknown: break
        }
        guard manager.lane(id) != nil else { return .signInRequired(name) }
        if error != .cancelled { manager.take(.failed(error, isOfRequest: isOfRequest), id) }
        return error
    }
}

/// Presents refresh tokens and stores their responses, in a turn of a lane. The order is the proof that no refresh
/// token is lost: a new one is stored, beside those that are held, before anything else in its response is read.
struct RefreshTurn: Sendable {
    let lane: SessionManager.Lane

    private var slot: VaultSlot { lane.account.slot }

    // MARK: The vault

    /// Marks in the vault that the provider is about to be asked, and reserves room for its response. `isSignIn`: the
    /// token is not in the vault. Nil if another host has changed the session: then the lane has what that host stored.
    func announce(
        presenting token: Secret?, isSignIn: Bool = false, by manager: isolated SessionManager
    ) async throws(BrokerError) -> RefreshPermit? {
        let session = isSignIn ? nil : lane.state.session
        guard isSignIn || session?.isEphemeral == false else { return .ofMemory }
        let store = manager.store
        switch try await store.announce(
            slot, presenting: token,
            accessTokenLeft: session?.tokens[.own]?.remaining(at: manager.clock.bootInstant),
            isNeeded: session?.rotation != .keeps)
        {
        case .granted(let lease, let newer, let older):
            return RefreshPermit(
                manager.vault, slot, under: lease,
                others: RemoteTokens(
                    newer: newer.flatMap(store.refreshTokens), older: older.flatMap(store.refreshTokens)))
        case .changed(let entry):
            await manager.applyRemoteChange(.init(.success(entry), of: lane.account.name, by: manager.clock), lane.id)
            return nil
        case .wait(let wait):
            throw .vaultUnreachable(.session(.heldElsewhere(lane.account.name, wait: wait)))
        }
    }

    /// The provider did nothing: the mark in the vault is removed. If the session is unsaved the mark stays, since the
    /// only copy on the disk may be in the reserved room.
    func settle(by manager: isolated SessionManager) async {
        guard let state = manager.lane(lane.id)?.state, !state.isUnsaved, state.session?.isEphemeral != true else {
            return
        }
        try? await manager.vault.settle(slot)
    }

    /// The provider has refused every refresh token. Nil if another host may have received a newer one.
    func proofOfEnd(by manager: isolated SessionManager) async -> EndProof? {
        guard lane.state.session?.isEphemeral == false else { return EndProof() }
        return await manager.vault.proofOfEnd(slot)
    }

    /// Runs one attempt. If it fails before anything was sent, other hosts need not wait for its outcome.
    func attempt<Value: Sendable>(
        under permit: RefreshPermit, by manager: isolated SessionManager,
        _ send: (RefreshAttempt) async throws(BrokerError) -> Value
    ) async throws(BrokerError) -> Value {
        let attempt = permit.attempt()
        do throws(BrokerError) {
            return try await send(attempt)
        } catch {
            if attempt.isUnsent { await settle(by: manager) }
            throw error
        }
    }

    // MARK: Refresh tokens

    /// Presents refresh tokens in their order. The next one follows only after proof that the one before it is of no
    /// use: it is dead, or it is another session's. The session that comes back is not saved.
    func present(
        _ tokens: [Secret], _ renewal: Renewal, of session: Session, under permit: RefreshPermit,
        by manager: isolated SessionManager
    ) async throws(BrokerError) -> Session {
        var session = session
        var rest = tokens[...]
        while true {
            let token = rest.popFirst()
            do throws(BrokerError) {
                let response = try await attempt(under: permit, by: manager) { attempt throws(BrokerError) in
                    try await renewal.send(token, attempt)
                }
                return try await adopt(response, presented: token, session, by: manager)
            } catch {
                switch renewal.meaning(error) {
                case .dead where !rest.isEmpty: continue
                case .otherSession where !rest.isEmpty:
                    session.keep(refreshTokens: Array(rest))
                    await keep(session, by: manager)
                default: throw error
                }
            }
        }
    }

    /// Stores a rotated refresh token, then validates the rest of its response. The returned session is not saved yet.
    func adopt(
        _ response: RenewalResponse, presented: Secret?, _ session: Session, by manager: isolated SessionManager
    ) async throws(BrokerError) -> Session {
        guard let presented else {
            var renewed = try await response.validate(session)
            if let token = response.refreshToken { renewed.refreshToken = token }
            return renewed
        }
        let held = session.keeping(response.refreshToken, presented: presented)
        if held.rotation == .rotates { await keep(held, by: manager) }
        do throws(BrokerError) {
            return try await response.validate(held).settlingRefreshTokens(
                response.refreshToken ?? presented, presented)
        } catch {
            // The refresh token of another session is not kept beside our own.
            if case .provider(.otherSession) = error { await keep(session, by: manager) }
            throw error
        }
    }

    private func keep(_ session: Session, by manager: isolated SessionManager) async {
        manager.take(.rotated(session, await manager.save(session, lane.account, as: .received)), lane.id)
    }

    /// Saves a session that is validated, and gives it to the readers.
    func serve(_ session: Session, by manager: isolated SessionManager) async -> Result<Void, BrokerError> {
        guard manager.take(.renewed(session, await manager.save(session, lane.account)), lane.id) else {
            return .failure(.signInRequired(lane.account.name))
        }
        guard let former = lane.state.session else { return .success(()) }
        if let oddity = session.idTokenOddity, oddity != former.idTokenOddity {
            manager.record(.idTokenDropped(lane.account.name, oddity))
        }
        if !session.lostScopes.isEmpty, session.lostScopes != former.lostScopes {
            manager.record(.scopesLost(lane.account.name, session.lostScopes))
        }
        await manager.observer(of: lane.account)?.changed(former, to: session, of: lane.account, isAsked: false)
        return .success(())
    }
}
