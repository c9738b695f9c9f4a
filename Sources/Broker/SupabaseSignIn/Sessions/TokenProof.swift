internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

extension SupabaseProvider {
    /// Checks an access token with the project's published keys. `isPublished` is nil if they cannot be fetched now.
    private func judge(_ token: Secret) async throws(BrokerError) -> (verdict: AccessTokenCheck, isPublished: Bool?) {
        var verdict = AccessTokenCheck(token, keys: .empty, project: project, now: nil)
        var isPublished: Bool?
        // An unknown key may be new, so the key set is fetched again, once.
        for isStale in [false, true] {
            if isStale { guard case .keyMissing = verdict else { break } }
            do throws(BrokerError) {
                let keys = try await keySets.keys(of: account, project, isStale: isStale)
                verdict = AccessTokenCheck(token, keys: keys, project: project, now: nil)
                isPublished = !keys.keys.isEmpty
            } catch {
                guard error != .cancelled else { throw error }
                // The project publishes keys, and none of them has signed this token: ask the server about it.
                return isPublished == true ? (.askServer, true) : (verdict, nil)
            }
        }
        return (verdict, isPublished)
    }

    /// Verifies an access token from the token endpoint before it is issued to callers. If the project publishes keys,
    /// one of them must have signed it. If it signs with a shared secret (during a migration to keys), the server is
    /// asked about every token; without published keys, or if they cannot be fetched, once per session.
    ///
    /// - Parameter wasProved: an earlier token of the same session was verified.
    /// - Throws: `.provider(.unproved)` if neither keys nor the server are reachable. The token must not be issued yet.
    func prove(_ token: Secret, wasProved: Bool) async throws(BrokerError) {
        let (verdict, isPublished) = try await judge(token)
        switch verdict {
        case .verified: return
        case .refused(let claim, let reason): throw failure(claim, .other(reason), token)
        case .keyMissing where isPublished == true: throw failure("kid", .keyNotPublished, token)
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
                throw failure("token", .rejected(code: problem.providerCode), token)
            default: throw error
            }
        }
    }

    private func failure(_ claim: String, _ cause: SupabaseReason.TokenFault, _ token: Secret) -> BrokerError {
        if claim == "iss", let issuer = AccessTokenClaims(unverified: token)?.foreignIssuer(to: project) {
            let text =
                "The access token's issuer is \(issuer), not \(project.issuer). If it is this project's, set it as "
                + "token_issuer of \(account.name)."
            return .provider(.invalidResponse(.stated(text)))
        }
        return .provider(.invalidResponse(.supabase(.invalidToken(host: host, claim: claim, cause: cause))))
    }

    private func verify(_ token: Secret) async throws(BrokerError) -> AccessTokenClaims {
        switch try await judge(token).verdict {
        case .verified(let claims): return claims
        case .refused(let claim, let reason): throw failure(claim, .other(reason), token)
        case .keyMissing, .askServer: return try await recognize(token)
        }
    }

    /// The claims of an access token from another program. If it has expired and only the server could verify it, its
    /// claims are returned unverified: the session is refreshed next, and the new token is verified.
    func whose(_ token: Secret) async throws(BrokerError) -> (claims: AccessTokenClaims, isExpired: Bool) {
        guard let stated = AccessTokenClaims(unverified: token) else {
            throw .invalid(field: "access_token", reason: .stated("it is not an access token of this project"))
        }
        // A token of another project must not be sent to this one.
        if let issuer = stated.foreignIssuer(to: project) {
            let text =
                "it belongs to another project: its issuer is \(issuer), not \(project.issuer). Nothing was sent or "
                + "stored. If it is this project's, set it as token_issuer of \(account.name)"
            throw .invalid(field: "access_token", reason: .stated(text))
        }
        do throws(BrokerError) {
            return (try await verify(token), false)
        } catch {
            guard error.asksForRefresh, let end = stated.expiresAt, end <= clock.now() + AccessTokenCheck.leeway
            else { throw error }
            return (stated, true)
        }
    }

    private func recognize(_ token: Secret) async throws(BrokerError) -> AccessTokenClaims {
        let user = try await user(bearer: token)
        guard let claims = AccessTokenClaims(unverified: token), claims.subject == user.id else {
            throw .provider(
                .invalidResponse(.stated("The user of the access token is not the user that \(host) reports.")))
        }
        return claims
    }
}

final class SupabaseKeySets: ProviderMemory {
    private let documents: KeptDocuments<JSONWebKeySet>
    private let http: any HTTPClient

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {
        self.http = http
        documents = KeptDocuments(work: work, clock: clock)
    }

    /// The project's keys. `isStale`: no cached key fits the token, so fetch them again.
    func keys(
        of account: Account, _ project: SupabaseProject, isStale: Bool
    ) async throws(BrokerError) -> JSONWebKeySet {
        // The gateway may require the project's API key for this request too.
        var request = try SupabaseProvider.building(try project.http(.keys))
        request.limits = HTTPLimits(maxBody: JSONWebKeySet.maxLength)
        let asked = request
        return try await documents.value(
            at: DocumentPlace(asked.url, account.trust), isStale: isStale
        ) { [http] () throws(BrokerError) in
            let response = try await account.send(asked, over: http)
            do throws(SupabaseError) {
                return try JSONWebKeySet(reading: response)
            } catch {
                let text = "The keys of \(asked.host) cannot be used (HTTP \(response.status))."
                throw .provider(.invalidResponse(.stated(text)))
            }
        }
    }
}
