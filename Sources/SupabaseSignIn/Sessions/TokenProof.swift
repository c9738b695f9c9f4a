internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// Whose an access token is.
extension SupabaseProvider {
    /// What the project's published keys say of an access token; `isPublished` is nil where they cannot be had now.
    private func judge(
        _ token: Secret
    ) async throws(BrokerError) -> (verdict: AccessTokenCheck, isPublished: Bool?) {
        var verdict = AccessTokenCheck(token, keys: .empty, project: project, now: nil)
        var isPublished: Bool?
        // An unknown key may be a new one: the set is fetched again, once.
        for isStale in [false, true] {
            if isStale { guard case .keyMissing = verdict else { break } }
            do throws(BrokerError) {
                let keys = try await keySets.keys(of: account, project, isStale: isStale)
                verdict = AccessTokenCheck(token, keys: keys, project: project, now: nil)
                isPublished = !keys.keys.isEmpty
            } catch {
                guard error != .cancelled else { throw error }
                // A project that is known to publish keys is asked about each token that none of them has signed.
                return isPublished == true ? (.askServer, true) : (verdict, nil)
            }
        }
        return (verdict, isPublished)
    }

    /// Checks an access token that came from the token endpoint, before anybody is served it.
    ///
    /// Where the project publishes keys, one of them must have signed it; a token that is signed with a secret there (a
    /// project on its way from one to the other) is shown to the server each time. Where it publishes none, or they
    /// cannot be had, the server says whose the token is, once per session.
    ///
    /// - Parameter wasProved: an earlier token of the same session was checked.
    /// - Throws: `.provider(.unproved)` if nobody could be asked: the token must wait.
    func prove(_ token: Secret, wasProved: Bool) async throws(BrokerError) {
        let (verdict, isPublished) = try await judge(token)
        switch verdict {
        case .verified: return
        case .refused(let claim, let reason): throw refusal(claim, reason, token)
        case .keyMissing where isPublished == true:
            throw refusal("kid", "signed with a key that is not published", token)
        case .keyMissing, .askServer: if wasProved, isPublished != true { return }
        }
        do throws(BrokerError) {
            _ = try await recognize(token)
        } catch {
            switch error {
            case .provider(.invalidResponse), .cancelled: throw error
            case .provider: throw .provider(.unproved(host: host))
            case .problem(let problem) where problem.isTrouble || problem.isRateLimit:
                throw .provider(.unproved(host: host))
            case .problem(let problem):
                throw refusal("token", "its own server says “\(problem.providerCode ?? "no")” of it", token)
            default: throw error
            }
        }
    }

    private func refusal(_ claim: String, _ reason: String, _ token: Secret) -> BrokerError {
        var text = "The access token of \(host) is not valid (\(claim)): \(reason)."
        if claim == "iss", let issuer = AccessTokenClaims(unverified: token)?.foreignIssuer(to: project) {
            text =
                "The access token's issuer is \(issuer), not \(project.issuer). "
                + "If it is this project's, set it as token_issuer of \(account.name)."
        }
        return .provider(.invalidResponse(text))
    }

    /// Checks an access token that another program hands in, by the project's keys or by asking the server.
    private func verify(_ token: Secret) async throws(BrokerError) -> AccessTokenClaims {
        switch try await judge(token).verdict {
        case .verified(let claims): return claims
        case .refused(let claim, let reason): throw refusal(claim, reason, token)
        case .keyMissing, .askServer: return try await recognize(token)
        }
    }

    /// Whose a token is that another program hands in. One that has expired, and that only the server could check, is
    /// taken at its word for now: its session is refreshed first, and the new token is checked.
    func whose(_ token: Secret) async throws(BrokerError) -> (claims: AccessTokenClaims, isExpired: Bool) {
        guard let stated = AccessTokenClaims(unverified: token) else {
            throw .invalid(field: "access_token", reason: "it is no access token of this project")
        }
        // What another project made is shown to nobody here.
        if let issuer = stated.foreignIssuer(to: project) {
            throw .invalid(
                field: "access_token",
                reason: "it is of another project: its issuer is \(issuer), not \(project.issuer). Nothing was sent or "
                    + "kept. If it is this project's, set it as token_issuer of \(account.name)")
        }
        do throws(BrokerError) {
            return (try await verify(token), false)
        } catch {
            guard error.asksForRefresh, let end = stated.expiresAt, end <= clock.now() + AccessTokenCheck.leeway
            else { throw error }
            return (stated, true)
        }
    }

    /// Asks the server whose a token is.
    private func recognize(_ token: Secret) async throws(BrokerError) -> AccessTokenClaims {
        let user = try await user(bearer: token)
        guard let claims = AccessTokenClaims(unverified: token), claims.subject == user.id else {
            throw .provider(.invalidResponse("The access token is another user's than \(host) says."))
        }
        return claims
    }
}
