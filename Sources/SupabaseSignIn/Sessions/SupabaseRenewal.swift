internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// A Supabase project's sessions, as the session manager renews and ends them.
extension SupabaseProvider {
    func renewal(of session: Session, for key: TokenKey) async throws(BrokerError) -> Renewal {
        try session.refuseMove(of: account, to: project.authURL)
        return Renewal(
            presents: session.refreshTokens,
            send: { token throws(BrokerError) in
                guard let token else { throw .signInRequired(account.name) }
                return renewed(by: try await refresh(token))
            }, meaning: SupabaseProvider.meaning)
    }

    /// A response with another refresh token: to a refresh, or to an operation that rotates it.
    func renewed(by response: SessionResponse) -> RenewalResponse {
        RenewalResponse(refreshToken: response.refreshToken) { session throws(BrokerError) in
            try await validate(response, for: session)
        }
    }

    private static func meaning(of error: BrokerError) -> RenewalMeaning {
        if error.provesDeadGrant { return .dead(code: error.wordOfEnd) }
        if error.provesUnchanged { return .unchanged }
        if case .provider(.otherSession) = error { return .otherSession }
        // How long it takes the older token, a project may count in seconds.
        return error.isTransient && error != .cancelled ? .maybeRotated : .unknown
    }

    func family(of session: Session) -> String? { session.project?.sessionID }

    /// Tells the server that the session is over. An access token that has expired cannot say so: another one is asked
    /// for first.
    func revoke(_ session: Session) async throws(BrokerError) -> Bool {
        let scope: SignOutScope = session.endsAll ? .global : .local
        var failure: BrokerError?
        if let token = session.tokens[.own], token.remaining(at: clock.bootInstant) != 0 {
            do throws(BrokerError) {
                if case .ended = try await signOut(scope, bearer: token.value) { return true }
            } catch {
                guard error.isTransient else { throw error }
                failure = error
            }
        }
        for token in session.refreshTokens {
            do throws(BrokerError) {
                let fresh = try inner(try await refresh(token), on: .refresh)
                _ = try await signOut(scope, bearer: fresh.accessToken)
                return true
            } catch {
                // What is dead has nothing left to end.
                guard !error.provesDeadGrant else { continue }
                throw error
            }
        }
        if let failure { throw failure }
        return true
    }

    /// Ends sessions with the word of one of them.
    func signOut(_ scope: SignOutScope, bearer: Secret) async throws(BrokerError) -> SignOutResponse {
        try await ask(project.signOut(scope, bearer: bearer), on: .account, SupabaseProvider.readSignOut)
    }

    private static func readSignOut(_ response: HTTPResponse) throws(SupabaseError) -> SignOutResponse {
        try SignOutResponse(reading: response)
    }
}
