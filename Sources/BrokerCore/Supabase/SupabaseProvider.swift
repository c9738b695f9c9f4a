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
    var host: String { (try? WebURL(parsing: project.authURL))?.host ?? "the project" }

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
        try await verify(fresh.accessToken, isOurs: true)
        var renewed = session
        renewed.user = fresh.user?.json ?? session.user
        var facts = Session.SupabaseFacts(fresh.claims)
        facts.providerToken = session.project?.providerToken
        facts.isEphemeral = session.project?.isEphemeral ?? false
        facts.migratesFrom = session.project?.migratesFrom
        renewed.project = facts
        renewed.tokens[.own] = token(fresh)
        return renewed
    }

    /// A session that nobody holds yet, of an answer to a sign-in.
    func session(
        _ answer: SupabaseSession, keepingProviderToken: Bool, isEphemeral: Bool
    ) async throws(BrokerError) -> Session {
        try await verify(answer.accessToken, isOurs: true)
        var facts = Session.SupabaseFacts(answer.claims)
        if keepingProviderToken { facts.providerToken = answer.providerToken }
        facts.isEphemeral = isEphemeral
        return Session(
            refreshToken: answer.refreshToken, unvalidatedRefreshToken: nil, identity: nil,
            subject: answer.claims.subject,
            user: answer.user?.json, scope: nil, issuer: project.issuer,
            tokenEndpointOrigin: try FlowRegistry.origin(of: project.authURL), signedInAt: clock.now(), end: nil,
            rotates: true, tokens: [.own: token(answer)], project: facts)
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

    /// Checks an access token by the project's keys; by asking the server, where it signs with a secret of its own.
    ///
    /// One that is ours came straight from the server, over a connection that proved whose it is: there a project
    /// without published keys, or keys that cannot be had now, take nothing away (OpenID Connect Core section 3.1.3.7
    /// says the same of ID tokens).
    @discardableResult
    func verify(_ token: Secret, isOurs: Bool) async throws(BrokerError) -> AccessTokenClaims? {
        var verdict = AccessTokenCheck(token, keys: SupabaseProvider.noKeys, project: project, now: nil)
        for isStale in [false, true] {
            guard case .keyMissing = verdict else { break }
            do throws(BrokerError) {
                let keys = try await directory.keys(of: account, at: keysURL, isStale: isStale)
                verdict = AccessTokenCheck(token, keys: keys, project: project, now: nil)
            } catch {
                guard isOurs, error.isTransient else { throw error }
                return nil
            }
        }
        switch verdict {
        case .verified(let claims): return claims
        case .refused(let claim, let reason):
            throw .provider(.invalidAnswer("The access token of \(host) is not valid (\(claim)): \(reason)."))
        case .keyMissing, .askServer:
            return isOurs ? nil : try await recognize(token)
        }
    }

    /// Whose a token is that another program hands in. One that has expired, and that only the server could check, is
    /// taken at its word for now: its session is refreshed first, and the answer tells.
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
        let claims: AccessTokenClaims?
        do throws(BrokerError) {
            claims = try await verify(token, isOurs: false)
        } catch {
            guard error.asksForRefresh, let end = stated.expiresAt, end <= clock.now() + AccessTokenCheck.leeway
            else { throw error }
            return (stated, true)
        }
        guard let claims else { throw .invalid(field: "access_token", reason: "whose it is could not be told") }
        return (claims, false)
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

    private static let noKeys = JSONWebKeySet.empty

    var keysURL: String { project.authURL + "/.well-known/jwks.json" }
}
