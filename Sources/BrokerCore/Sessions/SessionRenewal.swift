internal import HTTPMessages
internal import Secrets
internal import SessionVault

extension SessionManager {
    /// A refresh, in its turn: present the newest refresh token first; make a rotated one durable, beside its
    /// predecessor, before anything else in the response is looked at; then validate; then serve.
    func renew(_ id: LaneID, _ key: TokenKey, for reason: RefreshReason) async -> Result<Void, BrokerError> {
        if key != .own, lane(id)?.state.visible?.downscopedTo != nil {
            // What the newest refresh token is good for is found out before it is presented for another downscoped one.
            if case .failure(let error) = await renew(id, .own, for: .change) { return .failure(error) }
        }
        let name = id.account
        guard let lane = lane(id), let session = lane.state.visible else { return .failure(.signInRequired(name)) }
        if let lockError { return .failure(lockError) }
        let renewal: Renewal
        do throws(BrokerError) {
            renewal = try await provider(lane.account).renewal(of: session, for: key)
            try await announce(session, lane.account)
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
        // A refresh token that came with a downscoped token may be of that scope: it is presented for the whole at once.
        if key != .own, self.lane(id)?.state.visible?.downscopedTo != nil { _ = await renew(id, .own, for: .change) }
        return result
    }

    /// Says in the vault that the provider is about to be asked, and makes room there for its answer: what it rotates
    /// must not be lost for want of a place to keep it. Only a provider that is known not to rotate is asked without.
    func announce(_ session: Session, _ account: Account) async throws(BrokerError) {
        if !session.isEphemeral { try await makeRoom(account, isNeeded: session.rotates != false) }
    }

    /// - Parameter isNeeded: false where the provider is known not to rotate.
    func makeRoom(_ account: Account, isNeeded: Bool) async throws(BrokerError) {
        do throws(VaultError) {
            try await vault.announce(account.slot)
        } catch {
            guard case .unwritable(let reason) = error else { throw BrokerError(error) }
            guard isNeeded else { return }
            throw .vaultFailed(
                "The session was not refreshed, since a new refresh token could not be kept safe: \(reason)")
        }
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
            // Some providers say so of a scope that nobody consented to: the session's own refresh tells which it is.
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

    /// The provider did nothing: there is nothing to look for after a crash. If the session is unsaved, its only copy on
    /// the disk may be in the room that was made.
    func settle(_ lane: Lane) async {
        guard let state = self.lane(lane.id)?.state, !state.isUnsaved, state.session?.isEphemeral != true else {
            return
        }
        try? await vault.settle(lane.account.slot)
    }

    /// The provider has proven that the session is dead: it goes, and what took its place says so.
    ///
    /// - Parameter code: a project's own for why; other providers have but one.
    func end(_ lane: Lane, _ code: String?) async -> BrokerError {
        do throws(VaultError) {
            // Of a session that was to leave nothing behind, not even its end is kept.
            if lane.state.session?.isEphemeral != true {
                try await vault.store(SessionRecord.ended(code), in: lane.account.slot)
            }
        } catch {
            try? await vault.remove(lane.account.slot)
        }
        residue.settle(lane.account.slot)
        take(.dead(code: code), lane.id)
        return .sessionExpired(lane.account.name, word: code)
    }
}

/// What is done with refresh tokens and their responses in a turn of a lane. The order is the proof that no refresh token is
/// lost: a new one is durable, beside those that are held, before anything else in its response is looked at.
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

    /// Keeps a rotated refresh token, then validates the rest of its response. The session that comes back is not saved.
    func adopt(
        _ response: RenewalResponse, presented: Secret?, _ session: Session, by manager: isolated SessionManager
    ) async throws(BrokerError) -> Session {
        guard let presented else {
            var renewed = try await response.validate(session)
            if let token = response.refreshToken { renewed.refreshToken = token }
            return renewed
        }
        let held = session.keeping(response.refreshToken, presented: presented)
        if held.rotates == true { await keep(held, by: manager) }
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
        let (copy, error) = await manager.save(session, lane.account)
        manager.take(.rotated(session, copy, error), lane.id)
    }

    /// Saves a session that is validated, and gives it to the readers.
    func serve(_ session: Session, by manager: isolated SessionManager) async -> Result<Void, BrokerError> {
        let (copy, error) = await manager.save(session, lane.account)
        guard manager.take(.renewed(session, copy, error), lane.id) else {
            return .failure(.signInRequired(lane.account.name))
        }
        guard let former = lane.state.session else { return .success(()) }
        if let oddity = session.idTokenOddity, oddity != former.idTokenOddity {
            manager.record(.idTokenDropped(lane.account.name, oddity))
        }
        if !session.lostScopes.isEmpty, session.lostScopes != former.lostScopes {
            manager.record(.scopesLost(lane.account.name, session.lostScopes))
        }
        await manager.observer.changed(former, to: session, of: lane.account, isAsked: false)
        return .success(())
    }
}
