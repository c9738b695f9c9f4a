internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SessionVault

extension SessionManager {
    /// A refresh, in its turn: present the newest refresh token first; make a rotated one durable, beside its
    /// predecessor, before anything else in the response is looked at; then check; then serve.
    func renew(_ id: LaneID, _ key: TokenKey, for reason: RefreshReason) async -> Result<Void, BrokerError> {
        let name = id.account
        guard let lane = lane(id), let session = lane.state.visible else { return .failure(.signInRequired(name)) }
        let account = lane.account
        if let grant = account.grant { return await fetch(lane, key, grant, for: reason) }
        let provider = provider(account)
        if let lockError { return .failure(lockError) }
        do throws(BrokerError) {
            let metadata = try await provider.metadata()
            // The token endpoint may have moved by the provider's own word: the token does not follow it.
            guard try FlowRegistry.origin(of: metadata.tokenEndpoint) == session.tokenEndpointOrigin else {
                throw .conflict(
                    "The token endpoint of \(name) is no longer at \(session.tokenEndpointOrigin). "
                        + "Its session was not sent to the new one. Sign in again.")
            }
            let registration = try await provider.registration(metadata)
            try await announce(session, account)
            record(.refreshStarted(name, reason: reason))
            let (presented, answer) = try await present(session, key, metadata, registration, provider)
            let rotated = await keepRotated(answer, presented: presented, session, lane)
            var renewed = try await provider.validate(answer, for: rotated, key: key, metadata: metadata)
            if let unvalidatedRefreshToken = rotated.unvalidatedRefreshToken {
                renewed.refreshToken = unvalidatedRefreshToken
            }
            renewed.unvalidatedRefreshToken = nil
            renewed.dropTokens(at: clock.bootInstant, butFor: key)
            return await serve(renewed, lane)
        } catch {
            return .failure(await failed(error, key, lane))
        }
    }

    /// Says in the vault that the provider is about to be asked, and makes room there for its answer: what it rotates
    /// must not be lost for want of a place to keep it. Only a provider that is known not to rotate is asked without.
    func announce(_ session: Session, _ account: Account) async throws(BrokerError) {
        guard !session.isEphemeral else { return }
        do throws(VaultError) {
            try await vault.announce(account.slot)
        } catch {
            if case .unwritable = error, session.rotates == false { return }
            switch error {
            case .unwritable(let reason):
                throw .vaultFailed(
                    "The session was not refreshed, since a new refresh token could not be kept safe: \(reason)")
            default: throw BrokerError(error)
            }
        }
    }

    /// A rotated refresh token is durable, beside its predecessor, before anything else in its answer is looked at.
    func keepRotated(
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
        if let former = lane.state.session {
            await observer.changed(former, to: session, of: lane.account, isAsked: false)
        }
        return .success(())
    }

    /// Presents the refresh tokens, newest first; an older one only after `invalid_grant`.
    private func present(
        _ session: Session, _ key: TokenKey, _ metadata: ProviderMetadata, _ registration: ClientRegistration,
        _ provider: Provider
    ) async throws(BrokerError) -> (presented: Secret, answer: RenewalResponse) {
        var refusal = BrokerError.signInRequired(provider.account.name)
        // What a narrowed request is refused for may be its own: the older token is not risked for it.
        for token in key == .own ? session.refreshTokens : Array(session.refreshTokens.prefix(1)) {
            do throws(BrokerError) {
                let answer = try await provider.refresh(
                    token, key: key, metadata: metadata, registration: registration)
                return (token, answer)
            } catch {
                guard error.provesDeadGrant else { throw error }
                refusal = error
            }
        }
        throw refusal
    }

    private func failed(_ error: BrokerError, _ key: TokenKey, _ lane: Lane) async -> BrokerError {
        let (id, account) = (lane.id, lane.account)
        guard self.lane(id) != nil else { return .signInRequired(account.name) }
        if error.provesDeadGrant {
            if key == .own { return await end(lane, account.project == nil ? nil : error.wordOfEnd) }
            // Some providers say so of a scope that nobody consented to: the session's own refresh tells which it is.
            take(.becameUrgent, id)
        }
        // The provider says that it did nothing: there is nothing to look for after a crash. If the session is unsaved,
        // its only copy on the disk may be in the room that was made.
        if error.provesUnchanged, self.lane(id)?.state.isUnsaved == false { try? await vault.settle(account.slot) }
        guard self.lane(id) != nil else { return .signInRequired(account.name) }
        guard error != .cancelled else { return error }
        // It may have rotated though its response was lost: a project may take the older token for some seconds only.
        if account.project != nil, key == .own, error.isTransient, !error.provesUnchanged { take(.becameUrgent, id) }
        // A downscoped token that is refused says nothing about the session.
        take(.failed(error, isOfRequest: key != .own && !error.isTransient), id)
        return error
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

extension BrokerError {
    /// `invalid_grant` is the only proof (RFC 6749 section 5.2); everything else may pass.
    var provesDeadGrant: Bool {
        if case .provider(.refused("invalid_grant", _)) = self { true } else { false }
    }

    /// The provider said no in its own words, before it did anything.
    var provesUnchanged: Bool {
        switch self {
        case .provider(.refused), .provider(.rateLimited): true
        default: false
        }
    }
}
