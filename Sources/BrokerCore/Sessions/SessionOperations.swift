internal import HTTPMessages
internal import Secrets

/// Something that is asked of a provider with a session's access token, and what its response does to the session.
struct SessionOperation: Sendable {
    struct Response: Sendable {
        let response: HTTPResponse
        let effect: Effect
    }

    enum Effect: Sendable {
        /// It has another refresh token, which replaces the one that is held.
        case renewal(RenewalResponse)
        /// Throws if the response is not what was asked for.
        case edit(@Sendable (inout Session) throws(BrokerError) -> Void)
    }

    /// What an error says about the session and its tokens.
    enum Meaning: Sendable {
        /// The access token is not, or no longer, good. One refresh shows whether the session is.
        case tokenRefused
        case dead(code: String?)
        /// The provider said that it did nothing.
        case unchanged
        case unknown
    }

    typealias Sending = @Sendable () async throws(BrokerError) -> Response

    /// The refresh token counts as used once the request has been sent.
    var rotates = false
    /// What it does to the user's identities was asked for.
    var changesIdentities = false
    /// What is posted when it is done.
    var event: BrokerEvent.Kind?
    /// Builds the request with the access token that is good when its turn comes.
    let prepare: @Sendable (any SessionProvider, Secret) throws(BrokerError) -> Sending
    let meaning: @Sendable (BrokerError) -> Meaning
}

/// Every change of a session that is not a refresh takes its turn in the same lane: a provider that counts refresh tokens
/// ends a session whose older token is presented after a newer one was made.
extension SessionManager {
    /// Seconds of life that the token of a change has at least.
    private static let changeMargin = 30

    /// A change, in its turn. The response is returned for what its caller wants of it.
    func change(_ name: AccountName, _ operation: SessionOperation) async throws(BrokerError) -> HTTPResponse {
        try await ready(name)
        guard let id = lanes[name]?.id else { throw .accountNotFound(name.rawValue) }
        guard try readable(name) != nil else { throw absence(of: name) }
        let turn = enqueue(name) { sessionManager in
            sessionManager.take(.changeBegan, id)
            let result = await sessionManager.changeInTurn(id, operation)
            sessionManager.take(.changeEnded, id)
            return result
        }
        guard let result = await turn.wait() else { throw .cancelled }
        return try result.get()
    }

    /// The provider said of a session that it is dead, to somebody who had sent this token. It is believed if the session
    /// still has the token.
    func endIfHeld(
        _ name: AccountName, _ token: AccessToken, code: String?, otherwise error: BrokerError
    ) async -> BrokerError {
        let ending = enqueue(name) { sessionManager -> BrokerError in
            guard let lane = sessionManager.lanes[name], lane.state.session?.tokens[.own]?.value == token.value else {
                return error
            }
            return await sessionManager.end(lane, code)
        }
        return await ending.wait() ?? .cancelled
    }

    private func changeInTurn(
        _ id: LaneID, _ operation: SessionOperation
    ) async -> Result<HTTPResponse, BrokerError> {
        if let lockError { return .failure(lockError) }
        do throws(BrokerError) {
            try await freshen(id)
            do throws(BrokerError) {
                return .success(try await attempt(id, operation))
            } catch {
                guard case .tokenRefused = operation.meaning(error) else { throw error }
            }
            // An expired token and a forged one are told in one word: one refresh tells which it was.
            try await renew(id, .own, for: .change).get()
            return .success(try await attempt(id, operation))
        } catch {
            if case .dead(let code) = operation.meaning(error), let lane = lane(id) {
                return .failure(await end(lane, code))
            }
            return .failure(error)
        }
    }

    /// A change takes a token that outlives it.
    private func freshen(_ id: LaneID) async throws(BrokerError) {
        guard let lane = lane(id), let session = lane.state.session else { throw .signInRequired(id.account) }
        // Without a token the first one waits until it is proved.
        let remaining = session.tokens[.own].map { $0.remaining(at: clock.bootInstant) ?? .max } ?? 0
        guard remaining < SessionManager.changeMargin else { return }
        do throws(BrokerError) {
            // Whoever asks: not before the provider's `Retry-After` has passed.
            if let refusal = lane.state.renewal.backoff.refusalByProvider(at: clock.bootInstant) { throw refusal }
            try await renew(id, .own, for: .change).get()
        } catch {
            // A token that is alive may do for this.
            guard remaining > 0, error.isTransient else { throw error }
        }
    }

    /// Make room, send, keep, validate, serve: as a refresh does, with an access token in place of a refresh token.
    private func attempt(_ id: LaneID, _ operation: SessionOperation) async throws(BrokerError) -> HTTPResponse {
        guard let lane = lane(id), let session = lane.state.visible, let token = session.tokens[.own] else {
            throw .signInRequired(id.account)
        }
        let sending = try operation.prepare(provider(lane.account), token.value)
        if operation.rotates { try await announce(session, lane.account) }
        var changed = session
        let response: SessionOperation.Response
        do throws(BrokerError) {
            response = try await sending()
            switch response.effect {
            case .renewal(let renewal):
                let turn = RefreshTurn(lane: lane)
                changed = try await turn.adopt(renewal, presented: session.refreshTokens.first, session, by: self)
            case .edit(let edit): try edit(&changed)
            }
        } catch {
            // The provider may have done it though its response was lost. Then the refresh token counts as used, and it
            // is taken for some seconds only.
            if operation.rotates {
                if case .unchanged = operation.meaning(error) { await settle(lane) } else { take(.becameUrgent, id) }
            }
            throw error
        }
        guard case .held(_, let held, _)? = self.lane(id)?.state.presence else { throw .signInRequired(id.account) }
        let (copy, error) = changed == session ? (held, nil) : await save(changed, lane.account)
        guard take(.changed(changed, copy, operation.event, error), id) else { throw .signInRequired(id.account) }
        await observer.changed(session, to: changed, of: lane.account, isAsked: operation.changesIdentities)
        return response.response
    }
}
