internal import Secrets
internal import SessionVault

/// A refresh, in its turn of an account's lane. It presents the newest refresh token first. It stores a rotated one,
/// beside its predecessor, before it reads the rest of the response. Then it validates the response, and then it serves
/// it.
struct Refresh: Sendable {
    /// How often another host may have changed the session before the refresh gives up.
    private static let mostChanges = 3

    let id: SessionManager.LaneID
    let key: TokenKey
    let reason: RefreshReason

    func run(by manager: isolated SessionManager) async -> Result<Void, BrokerError> {
        await run(by: manager, changesLeft: Refresh.mostChanges)
    }

    private func run(
        by manager: isolated SessionManager, changesLeft: Int
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
    /// newest refresh token still has the whole scope, or because the own token would be exchanged and has expired.
    private func needsOwnFirst(_ session: Session, _ clock: BrokerClock) -> Bool {
        if session.mayHoldDownscopedToken { return true }
        guard reason == .exposed, !session.refreshTokens.isEmpty else { return false }
        return session.tokens[.own]?.isValid(at: clock.bootInstant) != true
    }

    private func refreshOwn(by manager: isolated SessionManager) async -> Result<Void, BrokerError> {
        await Refresh(id: id, key: .own, reason: .change).run(by: manager)
    }

    /// Another host has changed the session. If that brought a token, nothing is left to do.
    private func runAgain(
        after session: Session, by manager: isolated SessionManager, changesLeft: Int
    ) async -> Result<Void, BrokerError> {
        if manager.hasOther(than: session.tokens[key]?.value, key, id) { return .success(()) }
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
        if let wait = error.waitForOtherHost, wait <= RefreshWaits.longest { return error }
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
