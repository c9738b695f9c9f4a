internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SessionVault

extension SessionBook {
    /// A refresh, in its turn (CONTRACT section 9): present the newest refresh token first; make a rotated one durable,
    /// beside its predecessor, before anything else in the answer is looked at; then check; then serve.
    func renew(_ name: AccountName, _ key: TokenKey) async -> Result<Void, BrokerError> {
        guard let lane = lanes[name], let session = lane.session, lane.closings == 0 else {
            return .failure(.signInRequired(name))
        }
        let account = lane.account
        let provider = provider(account)
        do throws(BrokerError) {
            let metadata = try await provider.metadata()
            // The token endpoint may have moved by the provider's own word: the token does not follow it.
            guard try FlowDesk.origin(of: metadata.tokenEndpoint) == session.tokenEndpointOrigin else {
                throw .conflict(
                    "The token endpoint of \(name) is no longer at \(session.tokenEndpointOrigin). "
                        + "Its session was not sent to the new one. Sign in again.")
            }
            let registration = try await provider.registration(metadata)
            let (presented, answer) = try await present(session, key, metadata, registration, provider)
            var session = session
            session.refreshToken = presented
            session.successor = answer.refreshToken.flatMap { $0 == presented ? nil : $0 }
            if session.successor != nil {
                let unsaved = await save(session, account)
                keep(session, name, in: lane.generation)
                if let unsaved { lanes[name]?.error = unsaved }
            }
            var renewed = try await provider.validate(answer, for: session, key: key, metadata: metadata)
            if let successor = session.successor { renewed.refreshToken = successor }
            renewed.successor = nil
            // Narrowed tokens are asked for anew: dead ones would only pile up.
            renewed.tokens = renewed.tokens.filter { $0.key == .own || $0.value.remaining(at: clock.now()) != 0 }
            let unsaved = await save(renewed, account)
            guard keep(renewed, name, in: lane.generation) else { throw .signInRequired(name) }
            lanes[name]?.error = unsaved
            lanes[name]?.backoff = Backoff()
            post(.tokenRefreshed, name, session: renewed)
            return .success(())
        } catch {
            return .failure(await failed(error, name, key, lane))
        }
    }

    /// Memory takes what the vault has, unless the account has meanwhile become another one.
    @discardableResult
    private func keep(_ session: Session, _ name: AccountName, in generation: UInt64) -> Bool {
        guard lanes[name]?.generation == generation, lanes[name]?.session != nil else { return false }
        hold(session, name)
        return true
    }

    /// Presents the refresh tokens, newest first; an older one only after `invalid_grant`.
    private func present(
        _ session: Session, _ key: TokenKey, _ metadata: ProviderMetadata, _ registration: ClientRegistration,
        _ provider: Provider
    ) async throws(BrokerError) -> (presented: Secret, answer: TokenAnswer) {
        var refusal = BrokerError.signInRequired(provider.account.name)
        for token in session.refreshTokens {
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
        if error.provesDeadGrant { return await end(name, lane) }
        // A narrowed token that is refused says nothing about the session.
        if key == .own || error.isTransient {
            lanes[name]?.backoff.note(error, at: clock.now())
            lanes[name]?.error = error
            post(.refreshFailed, name, session: lanes[name]?.session, error: error)
        }
        return error
    }

    /// The provider has proven that the session is dead: it goes.
    private func end(_ name: AccountName, _ lane: Lane) async -> BrokerError {
        let session = lanes[name]?.session
        try? await vault.remove(lane.account.slot)
        guard lanes[name]?.generation == lane.generation else { return .sessionExpired(name) }
        lanes[name]?.session = nil
        lanes[name]?.backoff = Backoff()
        let error = BrokerError.sessionExpired(name)
        lanes[name]?.error = error
        publish(name)
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
}

/// When a failed refresh may be tried again.
struct Backoff: Sendable {
    private var failures = 0
    private var notedAt = 0
    private var until = 0
    /// The provider's own word, which even an explicit refresh respects.
    private var providerUntil = 0
    private var error: BrokerError?

    /// Seconds. A provider that is down for an hour is asked about fifteen times.
    private static let longest = 300

    mutating func note(_ error: BrokerError, at now: Int) {
        failures = min(failures + 1, 16)
        notedAt = now
        let delay = min(1 << (failures - 1), Backoff.longest)
        // Half of it is chance, so that many daemons do not return in step.
        until = now + max(delay / 2, 1) + Int.random(in: 0...max(delay / 2, 0))
        providerUntil = error.retryAfter.map { now + $0 } ?? 0
        until = max(until, providerUntil)
        self.error = error
    }

    /// The answer to a caller who comes too early.
    func refusal(at now: Int) -> BrokerError? {
        // A clock that was set back must not make the wait longer than it can be.
        guard let error, notedAt <= now, now < until else { return nil }
        return refusalByProvider(at: now) ?? error
    }

    /// The same, where only the provider's `Retry-After` counts.
    func refusalByProvider(at now: Int) -> BrokerError? {
        guard notedAt <= now, now < providerUntil, let error else { return nil }
        let seconds = providerUntil - now
        switch error {
        case .provider(.unavailable(let status, _)):
            return .provider(.unavailable(status: status, retryAfter: seconds))
        default: return .provider(.rateLimited(retryAfter: seconds))
        }
    }
}
