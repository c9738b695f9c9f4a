internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

extension SupabaseProvider {
    func renewal(
        of session: Session, for key: TokenKey, because reason: RefreshReason
    ) async throws(BrokerError) -> Renewal {
        try session.refuseMove(of: account, to: project.authURL)
        return Renewal(
            presents: session.refreshTokens,
            send: { token, attempt throws(BrokerError) in
                guard let token else { throw .signInRequired(account.name) }
                return renewed(by: try await refresh(token, under: attempt))
            }, meaning: SupabaseProvider.meaning)
    }

    /// The renewal from a response to a refresh or to an operation that rotates the refresh token.
    func renewed(by response: SessionResponse) -> RenewalResponse {
        RenewalResponse(refreshToken: response.refreshToken) { session throws(BrokerError) in
            try await validate(response, for: session)
        }
    }

    private static func meaning(of error: BrokerError) -> RenewalMeaning {
        if error.provesDeadGrant { return .dead(code: error.wordOfEnd) }
        if error.provesUnchanged { return .unchanged }
        if case .provider(.otherSession) = error { return .otherSession }
        // Nothing was sent.
        if case .vaultUnreachable = error { return .unknown }
        // The request may have rotated the refresh token, and the former one may be accepted for a few seconds only.
        return error.isTransient && error != .cancelled ? .maybeRotated : .unknown
    }

    func family(of session: Session) -> String? { session.project?.sessionID }

    /// Ends the session at the server. This needs a valid access token: with an expired one it is refreshed first.
    func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool {
        let scope: SignOutScope = endingAll ? .global : .local
        // If the project is unreachable, this throws: a refresh would not reach it either.
        if let token = session.tokens[.own], token.remaining(at: clock.bootInstant) != .zero,
            case .ended = try await signOut(scope, bearer: token.value)
        {
            return true
        }
        for token in session.refreshTokens {
            do throws(BrokerError) {
                let fresh = try inner(try await refresh(token, under: .ofRetiredSession), on: .refresh)
                _ = try await signOut(scope, bearer: fresh.accessToken)
                return true
            } catch {
                guard !error.provesDeadGrant else { continue }
                throw error
            }
        }
        return true
    }

    func signOut(_ scope: SignOutScope, bearer: Secret) async throws(BrokerError) -> SignOutResponse {
        try await ask(.signOut(scope), bearer: bearer, on: .account)
    }
}
