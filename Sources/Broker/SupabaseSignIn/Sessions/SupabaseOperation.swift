internal import BrokerCore
internal import RingbackBase
internal import SupabaseAuth

/// How a request with a session's access token uses the session.
enum SessionUse: Sendable {
    /// It changes the session, so it holds the lane.
    case changes
    /// It does not change the session, so it does not hold the lane.
    case borrows
    /// Its response is a session with a new refresh token, which replaces the current one.
    case rotates
}

extension SessionManager {
    /// Sends a request with the access token that is valid when its turn comes, and returns its response.
    ///
    /// - Parameters:
    ///   - request: built when its turn comes.
    ///   - changesIdentities: a caller requested the operation's change of the user's identities.
    ///   - event: posted after it succeeded.
    ///   - apply: the response's effect on the session, unless it rotates.
    @discardableResult
    nonisolated func ask<Response>(
        _ name: AccountName,
        _ request: @autoclosure @escaping @Sendable () throws(FieldError) -> SupabaseRequest<Response>,
        _ use: SessionUse = .changes, on occasion: SupabaseProblem.Occasion = .account,
        changesIdentities: Bool = false, event: BrokerEvent.Kind? = nil,
        apply: @escaping @Sendable (Response, inout Session) throws(SupabaseError) -> Void = { _, _ in }
    ) async throws(BrokerError) -> Response {
        guard try await account(name).project != nil else {
            throw .methodUnsupported(.supabase(.notSupabase(name)))
        }
        let operation = SessionOperation(
            rotates: use == .rotates, changesIdentities: changesIdentities, event: event,
            prepare: { provider, token throws(BrokerError) in
                guard let provider = provider as? SupabaseProvider else {
                    throw .methodUnsupported(.supabase(.notSupabase(nil)))
                }
                let asked = try provider.http(try SupabaseProvider.building(request), bearer: token)
                return { attempt throws(BrokerError) in
                    let response = try await provider.send(asked, under: attempt)
                    guard use != .rotates else {
                        return .init(response, try provider.renewal(by: response, on: occasion))
                    }
                    return .init(
                        response,
                        .edit { session throws(BrokerError) in
                            let answer: Response = try SupabaseProvider.read(response, on: occasion)
                            try SupabaseProvider.mapping(occasion) { () throws(SupabaseError) in
                                try apply(answer, &session)
                            }
                        })
                }
            },
            meaning: { error in
                if error.asksForRefresh { return .tokenRefused }
                if error.endsSession { return .dead(code: error.wordOfEnd) }
                return error.isWordOfProject ? .unchanged : .unknown
            })
        let response = use == .borrows ? try await borrow(name, operation) : try await change(name, operation)
        return try SupabaseProvider.read(response, on: occasion)
    }
}

extension SupabaseProvider {
    fileprivate func renewal(
        by response: HTTPResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> SessionOperation.Effect {
        do throws(BrokerError) {
            return .renewal(renewed(by: try SupabaseProvider.read(response, on: occasion)))
        } catch {
            // If the response was cut off, the reason for that is more useful than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw error
        }
    }
}
