internal import HTTPMessages
internal import Secrets
internal import SessionVault

extension SessionManager {
    /// A refresh, in its turn. It presents the newest refresh token first. It stores a rotated one, beside its
    /// predecessor, before it reads the rest of the response. Then it validates the response, and then it serves it.
    func renew(_ id: LaneID, _ key: TokenKey, for reason: RefreshReason) async -> Result<Void, BrokerError> {
        if key != .own, lane(id)?.state.visible?.unvalidated?.downscopedTo != nil {
            // The newest refresh token may be for fewer scopes only. The session's own token is refreshed first to find
            // out.
            if case .failure(let error) = await renew(id, .own, for: .change) { return .failure(error) }
        }
        let name = id.account
        guard let lane = lane(id), let session = lane.state.visible else { return .failure(.signInRequired(name)) }
        if let lockError { return .failure(lockError) }
        // The provider's `Retry-After` may have come while this refresh waited for its turn.
        if let refusal = lane.state.renewal.backoff.refusalByProvider(at: clock.bootInstant) {
            return .failure(refusal)
        }
        let renewal: Renewal
        do throws(BrokerError) {
            renewal = try await provider(lane.account).renewal(of: session, for: key, because: reason)
            try await announce(session, lane)
        } catch {
            let meaning: RenewalMeaning =
                key == .own || error.isTransient ? .unknown : .requestOnly(isUnchanged: false)
            return .failure(await failed(error, meaning, key, lane))
        }
        record(.refreshStarted(name, reason: reason))
        let result: Result<Void, BrokerError>
        do throws(BrokerError) {
            let turn = RefreshTurn(lane: lane)
            var renewed = try await turn.present(renewal, of: session, by: self)
            renewed.dropTokens(at: clock.bootInstant, butFor: key)
            result = await turn.serve(renewed, by: self)
        } catch {
            return .failure(await failed(error, renewal.meaning(error), key, lane))
        }
        // A refresh token that came with a downscoped token may be of that scope. It is presented for the whole scope
        // at once.
        if key != .own, self.lane(id)?.state.visible?.unvalidated?.downscopedTo != nil {
            _ = await renew(id, .own, for: .change)
        }
        return result
    }

    /// Marks in the vault that the provider is about to be asked, and reserves room for its response.
    func announce(_ session: Session, _ lane: Lane) async throws(BrokerError) {
        guard !session.isEphemeral else { return }
        try await store.announce(lane.account.slot, isNeeded: session.rotation != .keeps)
    }

    private func failed(
        _ error: BrokerError, _ meaning: RenewalMeaning, _ key: TokenKey, _ lane: Lane
    ) async -> BrokerError {
        let (id, account) = (lane.id, lane.account)
        guard self.lane(id) != nil else { return .signInRequired(account.name) }
        let error = lane.state.explaining(error, of: account.name, isOfRequest: key != .own)
        var isOfRequest = false
        switch meaning {
        case .dead(let code) where key == .own: return await end(lane, code)
        case .dead:
            // Some providers send this error for a scope without consent. A refresh of the session's own token
            // shows whether the session has ended.
            take(.becameUrgent, id)
            isOfRequest = true
            await settle(lane)
        case .unchanged: await settle(lane)
        case .requestOnly(let isUnchanged):
            isOfRequest = true
            if isUnchanged { await settle(lane) }
        case .maybeRotated: take(.becameUrgent, id)
        case .otherSession, .unknown: break
        }
        guard self.lane(id) != nil else { return .signInRequired(account.name) }
        if error != .cancelled { take(.failed(error, isOfRequest: isOfRequest), id) }
        return error
    }

    /// The provider did nothing: the mark in the vault is removed. If the session is unsaved the mark stays, since the
    /// only copy on the disk may be in the reserved room.
    func settle(_ lane: Lane) async {
        guard let state = self.lane(lane.id)?.state, !state.isUnsaved, state.session?.isEphemeral != true else {
            return
        }
        try? await vault.settle(lane.account.slot)
    }

    /// The provider has proven that the session has ended. It is removed, and a record that says so takes its place.
    ///
    /// - Parameter code: the provider's own code for the cause, where it has more than one.
    func end(_ lane: Lane, _ code: String?) async -> BrokerError {
        // If nothing of the session may be written, its end is not recorded either.
        if lane.state.session?.isEphemeral != true { await store.recordEnd(code, in: lane.account.slot) }
        residue.settle(lane.account.slot)
        take(.dead(code: code), lane.id)
        return .sessionExpired(lane.account.name, word: code)
    }
}

/// What is done with refresh tokens and their responses in a turn of a lane. The order is the proof that no refresh
/// token is lost: a new one is stored, beside those that are held, before anything else in its response is read.
struct RefreshTurn: Sendable {
    let lane: SessionManager.Lane

    /// Presents the refresh tokens, the newest first. An older one follows only after proof that the newer one is of no
    /// use: it is dead, or it is another session's. The session that comes back is not saved.
    func present(
        _ renewal: Renewal, of session: Session, by manager: isolated SessionManager
    ) async throws(BrokerError) -> Session {
        var session = session
        var rest = renewal.presents[...]
        while true {
            let token = rest.popFirst()
            do throws(BrokerError) {
                return try await adopt(try await renewal.send(token), presented: token, session, by: manager)
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
        manager.take(.rotated(session, await manager.save(session, lane.account)), lane.id)
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
