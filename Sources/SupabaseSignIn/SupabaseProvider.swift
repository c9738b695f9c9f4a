internal import BrokerCore
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
    let keySets: SupabaseKeySets
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

    /// What is wrong with a field is the caller's to mend, before anything is sent.
    static func building<Value>(_ make: () throws(FieldError) -> Value) throws(BrokerError) -> Value {
        do throws(FieldError) {
            return try make()
        } catch {
            throw BrokerError(error)
        }
    }

    /// Reads the answer to an operation of a user who is signed in.
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

    /// Asks for new tokens. Throws only what says that there is no answer to look into.
    func refresh(_ token: Secret) async throws(BrokerError) -> SessionResponse {
        let response = try await send(project.refreshGrant(token: token))
        do throws(SupabaseError) {
            return try SessionResponse(reading: response)
        } catch {
            // Of an answer that was cut off, why it was says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            if case .invalid = error, (400..<500).contains(response.status) {
                throw .provider(.unexplained(host: host, status: response.status))
            }
            throw BrokerError(refusing: error, host: host).unquoting(token)
        }
    }

    /// The second look at an answer to a refresh or a second factor: the session with it, or why none of its tokens may
    /// be used.
    func validate(_ answer: SessionResponse, for session: Session) async throws(BrokerError) -> Session {
        let fresh = try inner(answer, on: .refresh)
        let isSame = session.project?.sessionID == nil || fresh.claims.sessionID == session.project?.sessionID
        let isOurs = Session.isSame(fresh.claims.subject, session.subject) && isSame
        // Only a token that was checked can prove that a response is of another session.
        try await prove(fresh.accessToken, wasProved: isOurs && session.project?.isProved == true)
        guard isOurs else {
            throw .provider(.otherSession("The tokens of \(host) are of another session than before."))
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
        var session = Session(
            refreshToken: answer.refreshToken, unvalidatedRefreshToken: nil, identity: nil,
            subject: answer.claims.subject,
            user: answer.user?.json, scope: nil, issuer: project.issuer,
            tokenEndpointOrigin: try WebURL.origin(of: project.authURL), signedInAt: clock.now(), end: nil,
            rotates: true, tokens: facts.isProved ? [.own: token(answer)] : [:])
        session.project = facts
        session.isEphemeral = isEphemeral
        return session
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

    func user(bearer: Secret) async throws(BrokerError) -> SupabaseUser {
        try await ask(project.user(bearer: bearer), on: .account, SupabaseProvider.readUser)
    }

    static func readUser(_ response: HTTPResponse) throws(SupabaseError) -> SupabaseUser {
        try SupabaseUser(reading: response)
    }
}
