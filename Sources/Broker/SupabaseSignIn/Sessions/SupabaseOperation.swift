internal import BrokerCore
internal import RingbackBase
internal import SupabaseAuth

/// A request to a project with a session's access token, and the effect of its response on the session.
struct SupabaseOperation: Sendable {
    /// Builds the request with the access token that is valid when the request is sent.
    let request: @Sendable (SupabaseProject, Secret) throws(FieldError) -> HTTPRequest
    var occasion = SupabaseProblem.Occasion.account
    /// The response is a session with a new refresh token, which replaces the current one.
    var rotates = false
    /// The operation does not change the session, so it does not hold the lane.
    var borrowsToken = false
    /// A caller requested the operation's change of the user's identities.
    var changesIdentities = false
    /// The event that is posted after it succeeded.
    var event: BrokerEvent.Kind?
    /// The response's effect on the session; used only if `rotates` is false.
    var apply: @Sendable (HTTPResponse, inout Session) throws(SupabaseError) -> Void = { response, _ in
        _ = try RemovalResponse(reading: response)
    }
}

extension SupabaseOperation {
    /// Verifies the challenge of a second factor.
    static func verification(
        factor: String, _ challenge: String, _ proof: FactorProof, on occasion: SupabaseProblem.Occasion = .account
    ) -> SupabaseOperation {
        SupabaseOperation(
            request: { project, token throws(FieldError) in
                try project.verify(factor: factor, challenge: challenge, proof: proof, bearer: token)
            }, occasion: occasion, rotates: true, event: .mfaChallengeVerified)
    }

    /// The operation for the session manager.
    fileprivate var ready: SessionOperation {
        SessionOperation(
            rotates: rotates, changesIdentities: changesIdentities, event: event,
            prepare: { provider, token throws(BrokerError) in
                guard let provider = provider as? SupabaseProvider else {
                    throw .methodUnsupported(.supabase(.notSupabase(nil)))
                }
                let asked = try SupabaseProvider.building { () throws(FieldError) -> HTTPRequest in
                    try self.request(provider.project, token)
                }
                return { attempt throws(BrokerError) in
                    let response = try await provider.send(asked, under: attempt)
                    return SessionOperation.Response(response, try effect(of: response, at: provider))
                }
            },
            meaning: { error in
                if error.asksForRefresh { return .tokenRefused }
                if error.endsSession { return .dead(code: error.wordOfEnd) }
                return error.isWordOfProject ? .unchanged : .unknown
            })
    }

    private func effect(
        of response: HTTPResponse, at provider: SupabaseProvider
    ) throws(BrokerError) -> SessionOperation.Effect {
        guard rotates else {
            return .edit { session throws(BrokerError) in
                do throws(SupabaseError) {
                    try apply(response, &session)
                } catch {
                    throw BrokerError(error, on: occasion)
                }
            }
        }
        do throws(BrokerError) {
            return .renewal(
                provider.renewed(by: try SupabaseProvider.read(response, on: occasion, SupabaseProvider.readSession)))
        } catch {
            // If the response was cut off, the reason for that is more useful than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw error
        }
    }
}

extension SessionManager {
    /// Runs an operation at a Supabase project, in the account's lane or with a borrowed token.
    nonisolated func change(
        _ name: AccountName, _ operation: SupabaseOperation
    ) async throws(BrokerError) -> HTTPResponse {
        guard try await account(name).project != nil else {
            throw .methodUnsupported(.supabase(.notSupabase(name)))
        }
        return operation.borrowsToken
            ? try await borrow(name, operation.ready)
            : try await change(name, operation.ready)
    }
}
