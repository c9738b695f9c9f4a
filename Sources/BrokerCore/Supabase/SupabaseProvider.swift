internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// A Supabase project as the broker talks to it: each method is one conversation, with a bound. Holds nothing.
struct SupabaseProvider: Sendable {
    let account: Account
    let rules: SupabaseAccount
    let http: any HTTPClient
    let directory: ProviderDirectory
    let clock: BrokerClock

    var project: SupabaseProject { rules.project }
    var host: String { (try? WebURL(parsing: project.authURL))?.place ?? "the project" }

    func send(_ request: HTTPRequest) async throws(BrokerError) -> HTTPResponse {
        try await account.send(request, over: http)
    }

    /// Sends a request and reads its answer as the occasion would have it.
    func ask<Answer: Sendable>(
        _ request: HTTPRequest, on occasion: SupabaseProblem.Occasion,
        _ read: (HTTPResponse) throws(SupabaseError) -> Answer
    ) async throws(BrokerError) -> Answer {
        let response = try await send(request)
        return try SupabaseProvider.read(response, on: occasion, read)
    }

    /// Reads an answer as the occasion would have it.
    static func read<Answer>(
        _ response: HTTPResponse, on occasion: SupabaseProblem.Occasion,
        _ read: (HTTPResponse) throws(SupabaseError) -> Answer
    ) throws(BrokerError) -> Answer {
        do throws(SupabaseError) {
            return try read(response)
        } catch {
            throw BrokerError(error, on: occasion)
        }
    }

    /// Asks for new tokens. Throws only what says that there is no answer to look into.
    func refresh(_ token: Secret) async throws(BrokerError) -> SessionResponse {
        let response = try await send(project.refreshGrant(token: token))
        do throws(SupabaseError) {
            return try SessionResponse(reading: response)
        } catch {
            // Of an answer that was cut off, why it was says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw BrokerError(refusing: error, host: host).unquoting(token)
        }
    }

    /// The second look at an answer to a refresh or a second factor: the session with it, or why none of its tokens may
    /// be used.
    func validate(_ answer: SessionResponse, for session: Session) async throws(BrokerError) -> Session {
        let fresh = try inner(answer, on: .refresh)
        let isSame = session.project?.sessionID == nil || fresh.claims.sessionID == session.project?.sessionID
        guard Session.isSame(fresh.claims.subject, session.subject), isSame else {
            throw .provider(.invalidAnswer("The tokens of \(host) are of another session than before."))
        }
        try await prove(fresh.accessToken, wasProved: session.project?.isProved == true)
        var renewed = session
        renewed.user = fresh.user?.json ?? session.user
        var facts = Session.SupabaseFacts(fresh.claims)
        facts.isProved = true
        facts.providerToken = session.project?.providerToken
        facts.isEphemeral = session.project?.isEphemeral ?? false
        facts.migratesFrom = session.project?.migratesFrom
        renewed.project = facts
        renewed.tokens[.own] = token(fresh)
        return renewed
    }

    /// A session that nobody holds yet, of an answer to a sign-in. Its first token is left out if nobody could be asked
    /// whose it is: a refresh brings another one, which is checked then.
    func session(
        _ answer: SupabaseSession, keepingProviderToken: Bool, isEphemeral: Bool, wasProved: Bool = false
    ) async throws(BrokerError) -> Session {
        var facts = Session.SupabaseFacts(answer.claims)
        do throws(BrokerError) {
            try await prove(answer.accessToken, wasProved: wasProved)
            facts.isProved = true
        } catch {
            guard case .provider(.unproved) = error, answer.refreshToken != nil else { throw error }
        }
        if keepingProviderToken { facts.providerToken = answer.providerToken }
        facts.isEphemeral = isEphemeral
        return Session(
            refreshToken: answer.refreshToken, unvalidatedRefreshToken: nil, identity: nil,
            subject: answer.claims.subject,
            user: answer.user?.json, scope: nil, issuer: project.issuer,
            tokenEndpointOrigin: try FlowRegistry.origin(of: project.authURL), signedInAt: clock.now(), end: nil,
            rotates: true, tokens: facts.isProved ? [.own: token(answer)] : [:],
            project: facts)
    }

    func inner(
        _ answer: SessionResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> SupabaseSession {
        do throws(SupabaseError) {
            return try answer.session()
        } catch {
            throw BrokerError(error, on: occasion)
        }
    }

    private func token(_ answer: SupabaseSession) -> AccessToken {
        let lifetime = answer.lifetime(now: clock.now())
        return AccessToken(
            value: answer.accessToken, type: "Bearer", scope: nil,
            expiry: lifetime.map { Deadline(in: $0, by: clock) }, lifetime: lifetime)
    }

    // MARK: Whose a token is

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
                let keys = try await directory.keys(of: account, at: keysURL, isStale: isStale)
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
    private func prove(_ token: Secret, wasProved: Bool) async throws(BrokerError) {
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
            case .provider(.invalidAnswer), .cancelled: throw error
            case .provider: throw .provider(.unproved(host: host))
            case .project(let problem) where problem.isTrouble || problem.code == .rateLimited:
                throw .provider(.unproved(host: host))
            case .project(let problem):
                throw refusal("token", "its own server says “\(problem.providerCode ?? "no")” of it", token)
            default: throw error
            }
        }
    }

    private func refusal(_ claim: String, _ reason: String, _ token: Secret) -> BrokerError {
        var text = "The access token of \(host) is not valid (\(claim)): \(reason)."
        if claim == "iss", let issuer = AccessTokenClaims(unverified: token)?.foreignIssuer(to: project) {
            text =
                "The access token of \(host) names the issuer \(issuer), and \(account.name) expects \(project.issuer). "
                + "If that is how this project calls itself, set token_issuer = \"\(issuer)\" for the account."
        }
        return .provider(.invalidAnswer(text))
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
                reason: "it is of another project: its issuer is \(issuer), and \(account.name) expects "
                    + "\(project.issuer). Nothing was sent or kept. If that is how this project calls itself, set "
                    + "token_issuer for the account")
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
            throw .provider(.invalidAnswer("The access token is another user's than \(host) says."))
        }
        return claims
    }

    func user(bearer: Secret) async throws(BrokerError) -> SupabaseUser {
        try await ask(project.user(bearer: bearer), on: .account, SupabaseProvider.readUser)
    }

    static func readUser(_ response: HTTPResponse) throws(SupabaseError) -> SupabaseUser {
        try SupabaseUser(reading: response)
    }

    var keysURL: String { project.authURL + "/.well-known/jwks.json" }
}
