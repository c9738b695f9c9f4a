internal import HTTPMessages
internal import Secrets
internal import SessionVault

extension SessionManager {
    /// A refresh, in its turn. It presents the newest refresh token first. It stores a rotated one, beside its
    /// predecessor, before it looks at the rest of the response. Then it validates the response, and then it serves it.
    func renew(_ id: LaneID, _ key: TokenKey, for reason: RefreshReason) async -> Result<Void, BrokerError> {
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
        do throws(BrokerError) {
            let (presented, response) = try await renewal.present()
            var renewed = try await adopt(response, presented: presented, session, lane)
            renewed.dropTokens(at: clock.bootInstant, butFor: key)
            return await serve(renewed, lane)
        } catch {
            return .failure(await failed(error, renewal.meaning(error), key, lane))
        }
    }

    /// Stores a rotated refresh token, then validates the rest of its response. The returned session is not saved yet.
    func adopt(
        _ response: RenewalResponse, presented: Secret?, _ session: Session, _ lane: Lane
    ) async throws(BrokerError) -> Session {
        guard let presented else {
            var renewed = try await response.validate(session)
            if let token = response.refreshToken { renewed.refreshToken = token }
            return renewed
        }
        let held = await keepRotated(response, presented: presented, session, lane)
        var renewed = try await response.validate(held)
        if let token = held.unvalidatedRefreshToken { renewed.refreshToken = token }
        renewed.unvalidatedRefreshToken = nil
        return renewed
    }

    /// Marks in the vault that the provider is about to be asked, and reserves room for its response: a rotated refresh
    /// token must not be lost for lack of space. If the provider is known not to rotate, a failure to reserve is
    /// ignored.
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

    /// Stores a rotated refresh token beside its predecessor, before anything else in the response is looked at.
    private func keepRotated(
        _ answer: RenewalResponse, presented: Secret, _ session: Session, _ lane: Lane
    ) async -> Session {
        var session = session
        session.refreshToken = presented
        session.unvalidatedRefreshToken = answer.refreshToken.flatMap { $0 == presented ? nil : $0 }
        session.rotates = session.unvalidatedRefreshToken != nil
        guard session.unvalidatedRefreshToken != nil else { return session }
        let (copy, error) = await save(session, lane.account)
        take(.rotated(session, copy, error), lane.id)
        return session
    }

    private func serve(_ session: Session, _ lane: Lane) async -> Result<Void, BrokerError> {
        let (copy, error) = await save(session, lane.account)
        guard take(.renewed(session, copy, error), lane.id) else {
            return .failure(.signInRequired(lane.account.name))
        }
        if let oddity = session.idTokenOddity, oddity != lane.state.session?.idTokenOddity {
            record(.idTokenDropped(lane.account.name, oddity))
        }
        if let former = lane.state.session {
            await observer(of: lane.account)?.changed(former, to: session, of: lane.account, isAsked: false)
        }
        return .success(())
    }

    private func failed(
        _ error: BrokerError, _ meaning: RenewalMeaning, _ key: TokenKey, _ lane: Lane
    ) async -> BrokerError {
        let (id, account) = (lane.id, lane.account)
        guard self.lane(id) != nil else { return .signInRequired(account.name) }
        var isOfRequest = false
        switch meaning {
        case .dead(let code) where key == .own: return await end(lane, code)
        case .dead:
            // Some providers send this error for a scope that nobody consented to. A refresh of the session's own token
            // shows whether the session has ended.
            take(.becameUrgent, id)
            isOfRequest = true
            await settle(lane)
        case .unchanged: await settle(lane)
        case .requestOnly(let isUnchanged):
            isOfRequest = true
            if isUnchanged { await settle(lane) }
        case .maybeRotated: take(.becameUrgent, id)
        case .unknown: break
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
        do throws(VaultError) {
            // If the session was to leave nothing behind, its end is not recorded either.
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
