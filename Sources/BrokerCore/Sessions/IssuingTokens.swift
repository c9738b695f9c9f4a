internal import Cryptography
internal import Secrets

/// The result of a refresh that ended this recently is used for a new request.
private let joinWindow: Duration = .seconds(5)

/// Reads never queue: they take what is there, or join the refresh in the lane.
extension SessionManager {
    /// A token for a caller: the current one if it is valid long enough, else a refreshed one.
    func issuedToken(_ name: AccountName, _ query: SessionQuery) async throws(BrokerError) -> IssuedToken {
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        if let account = lanes[name]?.account { try account.kind.check(query, of: account) }
        let end = ContinuousClock.now + query.timeout
        try await ready(name, atMost: query.timeout)
        try await serviceSettled(name, atMost: max(end - .now, .zero))
        let session = try session(name, of: query.subject)
        let held = query.token(in: session)
        let minValid = query.minValid ?? SessionManager.defaultMinValid
        if let held, held.satisfies(minValid: minValid, at: clock.bootInstant) {
            return issuedToken(name, session, held)
        }
        if query.key.scopes != nil, session.refusesDownscoping { throw .downscopingRefused(name) }
        guard session.isRefreshable else {
            if query.minValid == nil, let held, isAlive(held) { return issuedToken(name, session, held) }
            if query.key != .own, let own = session.tokens[.own], isAlive(own) {
                let advice = lanes[name]?.account.renewalAdvice.map { " \($0)" } ?? ""
                throw .methodUnsupported(
                    "A narrowed token is had with a refresh token, and the provider gave \(name) none.\(advice)")
            }
            throw .sessionRanOut(name, advice: lanes[name]?.account.renewalAdvice)
        }
        // If the provider renews access tokens but sends no ID token, callers must not cause one refresh after another.
        if query.kind == .accessToken || !hasJustRefreshed(name) {
            do {
                try await join(name, query.key, query.allowance, waitingAtMost: max(end - .now, .zero))
            } catch {
                // Read again: the session may have changed during the wait, and its token may have expired.
                guard query.minValid == nil, error != .cancelled,
                    let session = try? self.session(name, of: query.subject),
                    let token = query.token(in: session), isAlive(token)
                else { throw error }
                return issuedToken(name, session, token)
            }
        }
        let renewed = try self.session(name, of: query.subject)
        guard let token = query.token(in: renewed) else { throw .signInRequired(name) }
        guard isAlive(token) else {
            // If refreshes bring no ID token, only a sign-in does. An access token that has expired on arrival is the
            // provider's mistake.
            guard query.kind == .accessToken else { throw .signInRequired(name) }
            throw .provider(.invalidResponse("The provider gave a token that has expired already."))
        }
        return issuedToken(name, renewed, token)
    }

    /// The session that a caller may see, if it has the expected subject.
    private func session(_ name: AccountName, of subject: String?) throws(BrokerError) -> Session {
        guard let session = try readable(name) else { throw absence(of: name) }
        if let subject, !Session.isSame(subject, session.subject) {
            throw .conflict("\(name) is signed in as somebody else than \(subject).")
        }
        return session
    }

    private func hasJustRefreshed(_ name: AccountName) -> Bool {
        guard let last = lanes[name]?.state.renewal.last, case .success = last.result else { return false }
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
        try await settled(startRefresh(of: name, key, for: .needed), within: bound)
    }

    func settled(
        _ refresh: Promise<Result<Void, BrokerError>>, within bound: Duration
    ) async throws(BrokerError) {
        guard let result = await refresh.wait(atMost: bound) else { throw Task.isCancelled ? .cancelled : .timedOut }
        try result.get()
    }

    private func isAlive(_ token: AccessToken) -> Bool { token.remaining(at: clock.bootInstant).map { $0 > 0 } ?? true }

    func issuedToken(_ name: AccountName, _ session: Session, _ token: AccessToken) -> IssuedToken {
        IssuedToken(token, of: session, name, shown: lanes[name]?.account.kind.shown(of: session))
    }

    /// The session that readers may see; nil while it is being closed.
    func readable(_ name: AccountName) throws(BrokerError) -> Session? {
        if let lockError { throw lockError }
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        return lane.state.visible
    }

    /// Why there is no session.
    func absence(of name: AccountName) -> BrokerError {
        if case .absent(.ended(let code))? = lanes[name]?.state.presence { return .sessionExpired(name, word: code) }
        return .signInRequired(name)
    }

    /// Refreshes because somebody asked for it (`POST …/refresh`).
    ///
    /// - Parameter query: which of the session's tokens.
    func refresh(
        _ name: AccountName, _ query: SessionQuery = SessionQuery(), isForced: Bool, rejected: [UInt8]?
    ) async throws(BrokerError) {
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        try await ready(name)
        guard let session = try readable(name) else { throw absence(of: name) }
        if let rejected, let token = query.token(in: session), Digest.sha256(token.value.revealedBytes()) != rejected {
            return  // Somebody has refreshed it since the caller got it.
        }
        guard session.isRefreshable else {
            let advice = lanes[name]?.account.renewalAdvice.map { " \($0)" } ?? ""
            throw .conflict("The provider gave \(name) no refresh token. Sign in again when the session ends.\(advice)")
        }
        if let running = lanes[name]?.state.renewal.running[query.key] {
            return try await settled(running, within: .seconds(30))
        }
        let now = clock.bootInstant
        if !isForced, let last = lanes[name]?.state.renewal.last, now - last.endedAt < joinWindow {
            return try last.result.get()
        }
        if let error = lanes[name]?.state.renewal.backoff.refusalByProvider(at: now) { throw error }
        try await settled(startRefresh(of: name, query.key, for: .requested), within: .seconds(30))
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
        let id = lane.id
        let seen = lane.state.session?.tokens[key]?.value
        let refresh = enqueue(name) { sessionManager in
            let result =
                sessionManager.hasOther(than: seen, key, id)
                ? .success(()) : await sessionManager.renew(id, key, for: reason)
            sessionManager.take(.refreshEnded(key, result), id)
            return result
        }
        take(.refreshBegan(key, refresh), id)
        return refresh
    }

    /// True if an earlier change in the lane (a second factor, a change of the user) has already brought another valid
    /// token, so that the refresh is not needed.
    private func hasOther(than seen: Secret?, _ key: TokenKey, _ id: LaneID) -> Bool {
        guard key == .own, let seen, lockError == nil, let session = lane(id)?.state.visible,
            session.unvalidatedRefreshToken == nil, let token = session.tokens[.own]
        else { return false }
        return token.value != seen && isAlive(token)
    }
}
