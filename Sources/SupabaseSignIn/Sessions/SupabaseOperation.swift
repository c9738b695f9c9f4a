internal import BrokerCore
internal import HTTPMessages
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// Something that is asked of a project with a session's access token, and what its answer does to the session.
struct SupabaseOperation: Sendable {
    /// Builds the request, with the access token that is good when its turn comes.
    let request: @Sendable (SupabaseProject, Secret) throws(FieldError) -> HTTPRequest
    var occasion = SupabaseProblem.Occasion.account
    /// The answer is a session with another refresh token, which replaces the one that is held.
    var rotates = false
    /// It changes nothing of the session: the lane is not held for it.
    var borrowsToken = false
    /// What it does to the user's identities was asked for.
    var changesIdentities = false
    /// What is told when it is done.
    var event: BrokerEvent.Kind?
    /// What the answer does to the session; only where it does not rotate.
    var apply: @Sendable (HTTPResponse, inout Session) throws(SupabaseError) -> Void = { response, _ in
        _ = try RemovalResponse(reading: response)
    }
}

extension SupabaseOperation {
    /// Answers a challenge of a second factor.
    static func verification(
        factor: String, _ challenge: String, _ proof: FactorProof, on occasion: SupabaseProblem.Occasion = .account
    ) -> SupabaseOperation {
        SupabaseOperation(
            request: { project, token throws(FieldError) in
                try project.verify(factor: factor, challenge: challenge, proof: proof, bearer: token)
            }, occasion: occasion, rotates: true, event: .mfaChallengeVerified)
    }

    /// The operation, as the session manager runs it.
    fileprivate var ready: SessionOperation {
        SessionOperation(
            rotates: rotates, changesIdentities: changesIdentities, event: event,
            prepare: { provider, token throws(BrokerError) in
                guard let provider = provider as? SupabaseProvider else {
                    throw .methodUnsupported("This account is not at a Supabase project.")
                }
                let asked = try SupabaseProvider.building { () throws(FieldError) -> HTTPRequest in
                    try self.request(provider.project, token)
                }
                return { () throws(BrokerError) in
                    let response = try await provider.send(asked)
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
            // Of a response that was cut off, why it was says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw error
        }
    }
}

extension SessionAccess {
    /// An operation at a Supabase project: in its turn, or with a borrowed token.
    func change(_ name: AccountName, _ operation: SupabaseOperation) async throws(BrokerError) -> HTTPResponse {
        guard try await account(name).project != nil else {
            throw .methodUnsupported("\(name) is not at a Supabase project.")
        }
        return operation.borrowsToken
            ? try await borrow(name, operation.ready)
            : try await change(name, operation.ready)
    }
}
