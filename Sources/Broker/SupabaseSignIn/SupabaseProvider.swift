internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// The requests to a Supabase project. Each method is one exchange with a time limit. The value has no state of its
/// own.
struct SupabaseProvider: Sendable {
    let account: Account
    let rules: SupabaseAccount
    let http: any HTTPClient
    let keySets: SupabaseKeySets
    let clock: BrokerClock

    var project: SupabaseProject { rules.project }
    var host: String { (try? WebURL(parsing: project.authURL))?.place ?? "the project" }

    func send(_ request: HTTPRequest) async throws(BrokerError) -> HTTPResponse {
        try await send(request, under: nil)
    }

    /// - Parameter attempt: what a request needs that makes the project replace a refresh token; nil for any other.
    func send(_ request: HTTPRequest, under attempt: RefreshAttempt?) async throws(BrokerError) -> HTTPResponse {
        try await account.send(request, under: attempt, isStrange: false, isPublic: false, over: http)
    }

    /// Sends a request and reads its response. The occasion decides how an error is reported.
    func ask<Answer: Sendable>(
        _ request: HTTPRequest, on occasion: SupabaseProblem.Occasion,
        _ read: (HTTPResponse) throws(SupabaseError) -> Answer
    ) async throws(BrokerError) -> Answer {
        let response = try await send(request)
        return try SupabaseProvider.read(response, on: occasion, read)
    }

    /// Reads a response. The occasion decides how an error is reported.
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

    /// Builds a request. The error of an invalid field is reported before anything is sent.
    static func building<Value>(_ make: () throws(FieldError) -> Value) throws(BrokerError) -> Value {
        do throws(FieldError) {
            return try make()
        } catch {
            throw BrokerError(error)
        }
    }

    /// Reads the response to an operation of the signed-in user.
    static func reading<Answer>(
        _ response: HTTPResponse, _ read: (HTTPResponse) throws(SupabaseError) -> Answer
    ) throws(BrokerError) -> Answer {
        try SupabaseProvider.read(response, on: .account, read)
    }

    static func readSession(_ response: HTTPResponse) throws(SupabaseError) -> SessionResponse {
        try SessionResponse(reading: response)
    }

    static func readMessage(_ response: HTTPResponse) throws(SupabaseError) -> MessageResponse {
        try MessageResponse(reading: response)
    }

    static func readChallenge(_ response: HTTPResponse) throws(SupabaseError) -> PasskeyChallenge {
        try PasskeyChallenge(reading: response)
    }

    static func readURL(_ response: HTTPResponse) throws(SupabaseError) -> URLResponse {
        try URLResponse(reading: response)
    }

    /// Requests new tokens. The tokens are not validated yet. Throws if there is no response with tokens.
    func refresh(_ token: Secret, under attempt: RefreshAttempt) async throws(BrokerError) -> SessionResponse {
        let response = try await send(project.refreshGrant(token: token), under: attempt)
        do throws(SupabaseError) {
            return try SessionResponse(reading: response)
        } catch {
            // If the response was cut off, the reason for that is more useful than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            if case .invalid = error, (400..<500).contains(response.status) {
                throw BrokerError.provider(
                    .unexplained(
                        host: host, status: response.status, message: OAuthError.statedText(in: response))
                ).unquoting(token)
            }
            throw BrokerError(refusing: error, host: host).unquoting(token)
        }
    }

    /// Validates the response to a refresh or a second factor. Returns the session with its tokens; throws if none of
    /// them may be used.
    func validate(_ response: SessionResponse, for session: Session) async throws(BrokerError) -> Session {
        let fresh = try inner(response, on: .refresh)
        let isSame = session.project?.sessionID == nil || fresh.claims.sessionID == session.project?.sessionID
        let isOurs = Session.isSame(fresh.claims.subject, session.subject) && isSame
        // Only a verified token can prove that a response belongs to another session.
        try await prove(fresh.accessToken, wasProved: isOurs && session.project?.isProved == true)
        guard isOurs else {
            throw .provider(.otherSession(.supabase(.otherSession(host: host))))
        }
        var renewed = session
        renewed.user = fresh.user?.json ?? session.user
        var facts = Session.SupabaseFacts(fresh.claims)
        facts.isProved = true
        facts.providerToken = session.project?.providerToken
        facts.migratesFrom = session.project?.migratesFrom
        renewed.project = facts
        renewed.tokens[.own] = token(fresh)
        return renewed
    }

    /// The session of a response to a sign-in, not stored yet. If its first access token could not be verified now, the
    /// session has no access token: a refresh requests another one, which is verified then.
    func session(
        _ response: SupabaseSession, keepingProviderToken: Bool, isEphemeral: Bool, wasProved: Bool = false
    ) async throws(BrokerError) -> Session {
        var facts = Session.SupabaseFacts(response.claims)
        do throws(BrokerError) {
            try await prove(response.accessToken, wasProved: wasProved)
            facts.isProved = true
        } catch {
            guard case .provider(.unproved) = error, response.refreshToken != nil else { throw error }
        }
        if keepingProviderToken { facts.providerToken = response.providerToken }
        var session = Session(
            refreshToken: response.refreshToken, identity: nil,
            subject: response.claims.subject,
            user: response.user?.json, scope: nil, issuer: project.issuer,
            tokenEndpointOrigin: try WebURL.origin(of: project.authURL), signedInAt: clock.wallInstant, end: nil,
            rotation: .rotates, tokens: facts.isProved ? [.own: token(response)] : [:])
        session.project = facts
        session.keeping = isEphemeral ? .memory : .vault
        return session
    }

    func inner(
        _ response: SessionResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> SupabaseSession {
        do throws(SupabaseError) {
            return try response.session()
        } catch {
            throw BrokerError(error, on: occasion)
        }
    }

    private func token(_ response: SupabaseSession) -> AccessToken {
        let lifetime = response.lifetime(now: clock.now()).map { Duration.seconds($0) }
        return AccessToken(
            value: response.accessToken, type: "Bearer", scope: nil,
            expiry: lifetime.map { Deadline(in: $0, by: clock) }, lifetime: lifetime)
    }

    func user(bearer: Secret) async throws(BrokerError) -> SupabaseUser {
        try await ask(project.user(bearer: bearer), on: .account, SupabaseProvider.readUser)
    }

    static func readUser(_ response: HTTPResponse) throws(SupabaseError) -> SupabaseUser {
        try SupabaseUser(reading: response)
    }
}
