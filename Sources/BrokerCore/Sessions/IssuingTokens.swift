internal import Cryptography
internal import Secrets

/// The result of a refresh that ended this recently is used for a new request.
private let joinWindow: Duration = .seconds(5)
/// How long a caller who asks for a refresh waits for it.
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
        if query.kind == .accessToken || !hasJustRefreshed(name) {
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

    /// The choice of a token for a caller, from the account's session as it is now. Throws if there is none, or none of
    /// the expected subject.
    private func choice(_ name: AccountName, _ query: SessionQuery) throws(BrokerError) -> TokenChoice {
        let (lane, session) = try holding(name)
        if let subject = query.subject, !Session.isSame(subject, session.subject) {
            throw .conflict(.session(.otherSubject(name, expected: subject)))
        }
        return TokenChoice(query: query, account: lane.account, session: session, now: clock.bootInstant)
    }

    private func hasJustRefreshed(_ name: AccountName) -> Bool {
        guard let last = lanes[name]?.state.held?.lastRefresh, last.error == nil else { return false }
        return clock.bootInstant - last.endedAt < joinWindow
    }

    /// Joins the refresh in the lane or starts one. Throws during back-off, and if the caller has used up its
    /// allowance.
    private func join(
        _ name: AccountName, _ key: TokenKey, _ allowance: Allowance?, waitingAtMost bound: Duration
    ) async throws(BrokerError) {
        if let renewal = lanes[name]?.state.renewal, renewal.running[key] == nil {
            if let error = renewal.backoff.refusal(at: clock.bootInstant) { throw error }
            if let wait = allowance?.take(at: clock.bootInstant) { throw .tooManyAttempts(retryAfter: wait) }
        }
        try await startRefresh(of: name, key, for: allowance == nil ? .needed : .exposed).get(atMost: bound)
    }

    /// The session that readers may see; nil while it is being closed.
    func readable(_ name: AccountName) throws(BrokerError) -> Session? {
        if let lockError { throw lockError }
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        return lane.state.visible
    }

    /// The account's lane and the session in it that readers may see. Throws the reason if there is none.
    func holding(_ name: AccountName) throws(BrokerError) -> (lane: Lane, session: Session) {
        let session = try readable(name)
        guard let lane = lanes[name], let session else { throw absence(of: name) }
        return (lane, session)
    }

    /// Why there is no session.
    func absence(of name: AccountName) -> BrokerError {
        lanes[name]?.state.ending(of: name) ?? .signInRequired(name)
    }

    /// Refreshes at the request of a caller (`POST …/refresh`).
    ///
    /// - Parameter query: which of the session's tokens, and the caller's allowance.
    func refresh(
        _ name: AccountName, _ query: SessionQuery = SessionQuery(), isForced: Bool, rejected: [UInt8]?
    ) async throws(BrokerError) {
        try await ready(name)
        let (lane, session) = try holding(name)
        if let rejected, let token = query.token(in: session), Digest.sha256(token.value.revealedBytes()) != rejected {
            return  // It was refreshed since the caller got it.
        }
        guard session.isRefreshable else {
            throw .conflict(.session(.notRefreshable(name, advice: lane.account.renewalAdvice)))
        }
        let renewal = lane.state.renewal
        if let running = renewal.running[query.key] { return try await running.get(atMost: refreshWait) }
        let now = clock.bootInstant
        if !isForced, let last = lane.state.held?.lastRefresh, now - last.endedAt < joinWindow {
            if let error = last.error { throw error }
            guard rejected != nil, isRefusedAtOnce(name, now) else { return }
        }
        if let error = renewal.backoff.refusalByProvider(at: now) { throw error }
        if let wait = query.allowance?.take(at: now) { throw .tooManyAttempts(retryAfter: wait) }
        let reason: RefreshReason = query.allowance == nil ? .requested : .exposed
        try await startRefresh(of: name, query.key, for: reason).get(atMost: refreshWait)
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
        guard let lane = lanes[name] else {
            let none = Promise<Result<Void, BrokerError>>()
            none.fulfil(.failure(.accountNotFound(name.rawValue)))
            return none
        }
        if let running = lane.state.renewal.running[key] { return running }
        let refresh = QueuedRefresh(
            id: lane.id, key: key, reason: reason, seen: lane.state.session?.tokens[key])
        queue(refresh)
        take(.refreshBegan(key, refresh.promise), lane.id)
        return refresh.promise
    }

    /// True if an earlier change in the lane (a second factor, a change of the user) or another host has already brought
    /// another valid token, so that the refresh is not needed.
    func hasOther(than seen: Secret?, _ key: TokenKey, _ id: LaneID) -> Bool {
        guard key != .own || seen != nil, lockError == nil, let session = lane(id)?.state.visible,
            session.unvalidated == nil, let token = session.tokens[key]
        else { return false }
        return token.value != seen && token.isValid(at: clock.bootInstant)
    }
}
