internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SessionVault

extension SessionManager {
    /// A refresh, in its turn: present the newest refresh token first; make a rotated one durable,
    /// beside its predecessor, before anything else in the answer is looked at; then check; then serve.
    func renew(
        _ name: AccountName, _ key: TokenKey, for reason: RefreshReason
    ) async -> Result<Void, BrokerError> {
        guard let lane = lanes[name], let session = lane.session, lane.closings == 0 else {
            return .failure(.signInRequired(name))
        }
        let account = lane.account
        if let grant = account.grant { return await fetch(name, key, grant, for: reason) }
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
            return .failure(await failed(error, name, key, lane))
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
        let unsaved = await save(session, lane.account)
        if keep(session, lane) {
            lanes[lane.account.name]?.isUnsaved = unsaved != nil
            if let unsaved { lanes[lane.account.name]?.error = unsaved }
        }
        return session
    }

    private func serve(_ session: Session, _ lane: Lane) async -> Result<Void, BrokerError> {
        let name = lane.account.name
        let unsaved = await save(session, lane.account)
        guard lanes[name]?.generation == lane.generation else { return .failure(.signInRequired(name)) }
        lanes[name]?.isOverdue = false
        lanes[name]?.backoff = Backoff()
        guard keep(session, lane) else { return .failure(.signInRequired(name)) }
        lanes[name]?.isUnsaved = unsaved != nil
        lanes[name]?.error = unsaved
        record(.refreshSucceeded(name))
        post(.tokenRefreshed, name, session: session)
        if let former = lane.session { await noteIdentities(of: lane.account, from: former, to: session) }
        return .success(())
    }

    /// Memory takes what the vault has, unless the account has meanwhile become another one.
    func keep(_ session: Session, _ lane: Lane) -> Bool {
        let name = lane.account.name
        guard lanes[name]?.generation == lane.generation, lanes[name]?.session != nil else { return false }
        hold(session, name)
        return true
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

    private func failed(
        _ error: BrokerError, _ name: AccountName, _ key: TokenKey, _ lane: Lane
    ) async -> BrokerError {
        guard lanes[name]?.generation == lane.generation else { return .signInRequired(name) }
        if error.provesDeadGrant {
            if key == .own { return await end(name, lane, lane.account.project == nil ? nil : error.wordOfEnd) }
            // Some providers say so of a scope that nobody consented to: the session's own refresh tells which it is.
            lanes[name]?.isOverdue = true
        }
        // The provider's own answer that it did nothing: there is nothing to look for after a crash. What could not be
        // saved may stand nowhere but in the room that was made.
        if error.provesUnchanged, lanes[name]?.isUnsaved == false { try? await vault.settle(lane.account.slot) }
        guard lanes[name]?.generation == lane.generation else { return .signInRequired(name) }
        guard error != .cancelled else { return error }
        // It may have rotated though its answer was lost: how long it takes the older token, a project may count in
        // seconds.
        if lane.account.project != nil, key == .own, error.isTransient, !error.provesUnchanged {
            lanes[name]?.isOverdue = true
        }
        record(.refreshFailed(name, error))
        // A narrowed token that is refused says nothing about the session.
        if key == .own || error.isTransient {
            lanes[name]?.backoff.note(error, at: clock.bootInstant)
            lanes[name]?.error = error
            post(.refreshFailed, name, session: lanes[name]?.session, error: error)
        }
        return error
    }

    /// The provider has proven that the session is dead: it goes, and what took its place says so.
    ///
    /// - Parameter word: a project's own for why; other providers have but one.
    func end(_ name: AccountName, _ lane: Lane, _ word: String?) async -> BrokerError {
        let session = lanes[name]?.session
        do throws(VaultError) {
            // Of a session that was to leave nothing behind, not even its end is kept.
            if session?.isEphemeral != true { try await vault.store(SessionRecord.ended(word), in: lane.account.slot) }
        } catch {
            try? await vault.remove(lane.account.slot)
        }
        unwritten[lane.account.slot] = nil
        guard lanes[name]?.generation == lane.generation else { return .sessionExpired(name, word: word) }
        lanes[name]?.session = nil
        lanes[name]?.backoff = Backoff()
        lanes[name]?.isUnsaved = false
        lanes[name]?.isOverdue = false
        let error = BrokerError.sessionExpired(name, word: word)
        lanes[name]?.error = error
        publish(name)
        schedule(name)
        record(.sessionEnded(name, subject: session?.subject))
        post(.refreshFailed, name, session: nil, error: error)
        post(.signedOut, name, session: session, error: error, state: .unauthenticated)
        return error
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
