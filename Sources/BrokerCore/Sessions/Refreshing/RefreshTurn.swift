internal import Secrets
internal import SessionVault

/// What is done with refresh tokens and their responses in a turn of a lane. The order is the proof that no refresh
/// token is lost: a new one is stored, beside those that are held, before anything else in its response is read.
struct RefreshTurn: Sendable {
    let lane: SessionManager.Lane

    private var slot: VaultSlot { lane.account.slot }

    // MARK: The vault

    /// Marks in the vault that the provider is about to be asked, and reserves room for its response. Nil if another
    /// host has changed the session: then the lane has what that host stored.
    ///
    /// - Parameter token: the refresh token that will be presented.
    func announce(
        presenting token: Secret?, by manager: isolated SessionManager
    ) async throws(BrokerError) -> RefreshPermit? {
        guard let session = lane.state.session, !session.isEphemeral else { return .ofMemory }
        let left = session.tokens[.own]?.remaining(at: manager.clock.bootInstant)
        return try await announce(
            presenting: token, accessTokenLeft: left, isNeeded: session.rotation != .keeps, by: manager)
    }

    /// The same for a sign-in with a refresh token that is not in the vault.
    func announceSignIn(by manager: isolated SessionManager) async throws(BrokerError) -> RefreshPermit? {
        try await announce(presenting: nil, accessTokenLeft: nil, isNeeded: true, by: manager)
    }

    private func announce(
        presenting token: Secret?, accessTokenLeft: Duration?, isNeeded: Bool, by manager: isolated SessionManager
    ) async throws(BrokerError) -> RefreshPermit? {
        let store = manager.store
        switch try await store.announce(
            slot, presenting: token, accessTokenLeft: accessTokenLeft, isNeeded: isNeeded)
        {
        case .granted(let lease, let newer, let older):
            return RefreshPermit(
                manager.vault, slot, under: lease,
                others: OthersTokens(
                    newer: newer.flatMap(store.refreshTokens), older: older.flatMap(store.refreshTokens)))
        case .changed(let entry):
            await manager.takeUp(.init(.success(entry), of: lane.account.name, by: manager.clock), lane.id)
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

/// Refresh tokens of a session that other hosts received and that this host does not have, the newest first.
struct OthersTokens: Sendable {
    /// They came after those that this host has.
    var newer: [Secret] = []
    var older: [Secret] = []

    /// The order in which the tokens are presented. With a request for a downscoped token, which may fail because of its
    /// scopes, only the newest is.
    func joined(with own: [Secret], for key: TokenKey) -> [Secret] {
        guard !own.isEmpty else { return own }
        var known: Set<Secret> = []
        let all = (newer + own + older).filter { known.insert($0).inserted }
        return key == .own ? all : newer.isEmpty ? own : Array(all.prefix(1))
    }
}
