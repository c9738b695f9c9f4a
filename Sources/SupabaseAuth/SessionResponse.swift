public import HTTPMessages
internal import OAuth
public import Secrets
internal import StrictJSON

/// An answer that brings a session, in two looks. The first finds the refresh token, which may have been rotated: it
/// must be durable before anything else in the answer can fail. The second checks the rest.
///
/// The refresh token is found as ``TokenResponse`` finds it: in an answer without an access token, in JSON that is broken
/// behind it, in a body that was cut off.
public struct SessionResponse: Sendable {
    /// What came.
    public enum Outcome: Sendable, Equatable {
        case session(SupabaseSession)
        /// A user without a session: a sign-up that waits for its confirmation.
        case user(SupabaseUser)
        /// Done, but nothing follows yet: the first of two confirmations of an e-mail change. The server's words.
        case accepted(message: String?)
    }

    /// The new refresh token, unchecked beyond its characters; nil if none came.
    public let refreshToken: Secret?
    /// What the answer's head says about the session.
    public let trace: SessionTrace
    private let result: Result<Outcome, SupabaseError>

    /// The first look. Throws what an answer that is no success means, see ``SupabaseError``; a success never throws
    /// once a refresh token is found.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard (200..<300).contains(response.status) else { throw ErrorReading.error(response) }
        trace = SessionTrace(reading: response.fields)
        let tokens: TokenResponse
        do {
            tokens = try TokenResponse(reading: response)
        } catch {
            throw SessionResponse.meaning(of: error, response)
        }
        refreshToken = tokens.refreshToken
        result = SessionResponse.outcome(tokens, response)
        // Without a token to lose, a broken answer is told at once.
        if refreshToken == nil, case .failure(let error) = result { throw error }
    }

    /// The second look: what came, or why it cannot be used.
    public func outcome() throws(SupabaseError) -> Outcome { try result.get() }

    /// The second look where only a session will do.
    public func session() throws(SupabaseError) -> SupabaseSession {
        guard case .session(let session) = try result.get() else {
            throw .invalid(reason: "no access_token where a session was awaited")
        }
        return session
    }

    private static func meaning(of error: OAuthError, _ response: HTTPResponse) -> SupabaseError {
        switch error {
        case .invalid(_, let reason): .invalid(reason: reason)
        case .unavailable(_, let status, let seconds): .unavailable(status: status, retryAfter: seconds)
        case .failing(let refusal, let seconds): .unavailable(status: refusal.status, retryAfter: seconds)
        default: .invalid(reason: "an error in a successful answer (HTTP \(response.status))")
        }
    }

    private static func outcome(_ tokens: TokenResponse, _ response: HTTPResponse) -> Result<Outcome, SupabaseError> {
        do throws(SupabaseError) {
            let object = try ErrorReading.object(response)
            guard object["access_token"] == nil || object["access_token"] == .null, tokens.refreshToken == nil else {
                return .success(.session(try session(tokens, object)))
            }
            if let user = SupabaseUser(reading: object) { return .success(.user(user)) }
            // `{"code": "200", "msg": "Confirmation link accepted. …"}`, the code a number in other versions.
            guard object["msg"]?.string != nil || object["message"]?.string != nil else {
                throw .invalid(reason: "neither a session nor a user")
            }
            return .success(.accepted(message: PlainText.message(object["msg"]?.string ?? object["message"]?.string)))
        } catch {
            return .failure(error)
        }
    }

    private static func session(_ tokens: TokenResponse, _ object: JSONObject) throws(SupabaseError) -> SupabaseSession
    {
        let set: TokenSet
        do {
            set = try tokens.tokenSet()
        } catch {
            if case .invalid(_, let reason) = error { throw .invalid(reason: reason) }
            throw .invalid(reason: "an answer that is not a session")
        }
        return try SupabaseSession(set, object)
    }
}

/// What the server says about a session in the head of an answer. Nothing of it is trusted; it explains what happened.
public struct SessionTrace: Sendable, Equatable {
    /// Why an older refresh token was taken once more.
    public enum ReuseCause: String, Sendable {
        case concurrentRefresh = "concurrent-refresh"
        case failedToSave = "fail-to-save"
        case alwaysAllowed = "always-allow"
    }

    public let userID: String?
    public let sessionID: String?
    /// How many refresh tokens the session has had, for tokens of the second kind.
    public let counter: Int?
    /// Nil if the token was not an older one, or the server does not say.
    public let reuse: ReuseCause?

    init(reading fields: HTTPFields) {
        userID = fields["sb-auth-user-id"].flatMap { PlainText.isUUID($0) ? $0 : nil }
        sessionID = fields["sb-auth-session-id"].flatMap { PlainText.isUUID($0) ? $0 : nil }
        counter = fields["sb-auth-refresh-token-counter"].flatMap { Int($0) }
        reuse = fields["sb-auth-refresh-token-reuse-cause"].flatMap(ReuseCause.init(rawValue:))
    }
}
