internal import HTTPMessages
internal import Secrets
internal import SessionVault
internal import StrictJSON
internal import SupabaseAuth

/// Something that is asked of a project with a session's access token, and what its answer does to the session.
struct SupabaseOperation: Sendable {
    /// Builds the request, with the access token that is good when its turn comes.
    let request: @Sendable (SupabaseProject, Secret) throws(FieldError) -> HTTPRequest
    var occasion = SupabaseProblem.Occasion.account
    /// The answer is a session with another refresh token, which replaces the one that is held.
    var rotates = false
    /// What it does to the user's identities was asked for.
    var changesIdentities = false
    /// What is told when it is done.
    var event: BrokerEvent.Kind?
    /// What the answer does to the session; only where it does not rotate.
    var apply: @Sendable (HTTPResponse, inout Session) throws(SupabaseError) -> Void = { response, _ in
        _ = try RemovalResponse(reading: response)
    }
}

/// Refreshes, second factors and changes of the user share one lane: the server ends a session whose older refresh token
/// is presented while another change has made a newer one.
extension SessionManager {
    /// A change, in its turn. The answer is returned for what its caller wants of it.
    func change(_ name: AccountName, _ change: SupabaseOperation) async throws(BrokerError) -> HTTPResponse {
        try await ready(name)
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        guard lane.account.project != nil else { throw .methodUnsupported("\(name) is not at a Supabase project.") }
        guard try readable(name) != nil else { throw absence(of: name) }
        let turn = enqueue(name) { sessionManager in
            sessionManager.take(.changeBegan, lane.id)
            let result = await sessionManager.changeInTurn(lane.id, change)
            sessionManager.take(.changeEnded, lane.id)
            return result
        }
        guard let result = await turn.wait() else { throw .cancelled }
        return try result.get()
    }

    private func changeInTurn(_ id: LaneID, _ change: SupabaseOperation) async -> Result<
        HTTPResponse, BrokerError
    > {
        if let lockError { return .failure(lockError) }
        do throws(BrokerError) {
            try await freshen(id)
            do throws(BrokerError) {
                return .success(try await attempt(id, change))
            } catch {
                guard error.asksForRefresh else { throw error }
            }
            // An expired token and a forged one are told in one word: one refresh tells which it was.
            try await renew(id, .own, for: .change).get()
            return .success(try await attempt(id, change))
        } catch {
            if error.endsSession, let lane = lane(id) { return .failure(await end(lane, error.wordOfEnd)) }
            return .failure(error)
        }
    }

    /// A change takes a token that outlives it.
    private func freshen(_ id: LaneID) async throws(BrokerError) {
        guard let lane = lane(id), let session = lane.state.session else { throw .signInRequired(id.account) }
        guard let remaining = session.tokens[.own]?.remaining(at: clock.bootInstant),
            remaining < SessionManager.changeMargin
        else { return }
        do throws(BrokerError) {
            // Whoever asks: not before the server said.
            if let refusal = lane.state.renewal.backoff.refusalByProvider(at: clock.bootInstant) { throw refusal }
            try await renew(id, .own, for: .change).get()
        } catch {
            // What is alive may do for this.
            guard remaining > 0, error.isTransient else { throw error }
        }
    }

    private func attempt(_ id: LaneID, _ change: SupabaseOperation) async throws(BrokerError) -> HTTPResponse {
        let name = id.account
        guard let lane = lane(id), let session = lane.state.visible, let token = session.tokens[.own] else {
            throw .signInRequired(name)
        }
        guard let conversation = provider(lane.account).asProject else {
            throw .methodUnsupported("\(name) is not at a Supabase project.")
        }
        let request = try SupabaseFlowStart.building { () throws(FieldError) in
            try change.request(conversation.project, token.value)
        }
        let (response, changed) =
            change.rotates
            ? try await rotate(request, change, session, lane, conversation)
            : try await apply(request, change, session, conversation)
        guard self.lane(id) != nil else { throw .signInRequired(name) }
        if changed != session {
            let (copy, error) = await save(changed, lane.account)
            guard take(.changed(changed, copy, change.event, error), id) else { throw .signInRequired(name) }
        } else if let event = change.event {
            post(event, name, session: changed)
        }
        await observer.changed(session, to: changed, of: lane.account, isAsked: change.changesIdentities)
        return response
    }

    /// The server may have done it though its answer was lost, and then the token that is held counts as used: what the
    /// server still takes of it, it takes for seconds.
    private func rotate(
        _ request: HTTPRequest, _ change: SupabaseOperation, _ session: Session, _ lane: Lane,
        _ conversation: SupabaseProvider
    ) async throws(BrokerError) -> (HTTPResponse, Session) {
        try await announce(session, lane.account)
        do throws(BrokerError) {
            let response = try await conversation.send(request)
            return (response, try await rotated(response, change, session, lane, conversation))
        } catch {
            if !error.isWordOfProject { take(.becameUrgent, lane.id) }
            throw error
        }
    }

    private func apply(
        _ request: HTTPRequest, _ change: SupabaseOperation, _ session: Session, _ conversation: SupabaseProvider
    ) async throws(BrokerError) -> (HTTPResponse, Session) {
        let response = try await conversation.send(request)
        return (response, try applied(response, change, session))
    }

    /// The new refresh token is durable before anything else in the answer is looked at.
    private func rotated(
        _ response: HTTPResponse, _ change: SupabaseOperation, _ session: Session, _ lane: Lane,
        _ conversation: SupabaseProvider
    ) async throws(BrokerError) -> Session {
        let answer: SessionResponse
        do throws(BrokerError) {
            answer = try SupabaseProvider.read(response, on: change.occasion, Broker.readSession)
        } catch {
            // Of an answer that was cut off, why it was says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            // The server's own word that it did nothing. What could not be saved may stand nowhere but in the room that
            // was made.
            if error.isWordOfProject, self.lane(lane.id)?.state.isUnsaved == false {
                try? await vault.settle(lane.account.slot)
            }
            throw error
        }
        guard let presented = session.refreshTokens.first else {
            var renewed = try await conversation.validate(answer, for: session)
            renewed.refreshToken = answer.refreshToken
            return renewed
        }
        let held = await keepRotated(.project(answer), presented: presented, session, lane)
        var renewed = try await conversation.validate(answer, for: held)
        if let unvalidatedRefreshToken = held.unvalidatedRefreshToken { renewed.refreshToken = unvalidatedRefreshToken }
        renewed.unvalidatedRefreshToken = nil
        return renewed
    }

    private func applied(
        _ response: HTTPResponse, _ change: SupabaseOperation, _ session: Session
    ) throws(BrokerError) -> Session {
        var changed = session
        do throws(SupabaseError) {
            try change.apply(response, &changed)
        } catch {
            throw BrokerError(error, on: change.occasion)
        }
        return changed
    }

    /// Seconds of life that a change's token has at least.
    private static let changeMargin = 30
}

extension BrokerError {
    /// The server's own no.
    var isWordOfProject: Bool { if case .project = self { true } else { false } }

    /// The server's word for a token that is not, or no more, good.
    var asksForRefresh: Bool {
        if case .project(let problem) = self { problem.providerCode == "bad_jwt" } else { false }
    }

    /// Why a session is dead, in a project's own word.
    var wordOfEnd: String? {
        switch self {
        case .provider(.refused("invalid_grant", let word)): word
        case .project(let problem): problem.providerCode
        default: nil
        }
    }

    /// The server's words for a session that is over, said to who had a token of it.
    var endsSession: Bool {
        if case .project(let problem) = self { problem.endsSession } else { false }
    }
}
