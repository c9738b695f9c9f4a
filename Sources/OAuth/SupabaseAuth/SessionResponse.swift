public import HTTPMessages
internal import OAuth
public import Secrets
internal import StrictJSON

/// A response with a session, read in two steps. The first step finds the refresh token, which may be a rotated one: it
/// must be stored durably before anything else in the response can fail. The second step checks the rest.
///
/// The refresh token is found in the same way as in ``TokenResponse``: also in a response without an access token, with
/// malformed JSON after it, or truncated.
public struct SessionResponse: Sendable {
    /// The content of the response.
    public enum Outcome: Sendable, Equatable {
        case session(SupabaseSession)
        /// A user without a session: a sign-up that must be confirmed.
        case user(SupabaseUser)
        /// Accepted, but not complete: the first of two confirmations of an e-mail change. The server's message.
        case accepted(message: String?)
    }

    /// The new refresh token, with only its characters checked; nil if there is none.
    public let refreshToken: Secret?
    /// What the response's header fields say about the session.
    public let trace: SessionTrace
    private let result: Result<Outcome, SupabaseError>

    /// The first step. For an error response it throws the error, see ``SupabaseError``. For a success it never throws
    /// once a refresh token was found.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        trace = SessionTrace(reading: response.fields)
        guard (200..<300).contains(response.status) else {
            refreshToken = (try? TokenResponse(reading: response))?.refreshToken
            let error = ErrorReading.error(response)
            guard refreshToken != nil else { throw error }
            result = .failure(error)
            return
        }
        let tokens: TokenResponse
        do {
            tokens = try TokenResponse(reading: response)
        } catch {
            throw SessionResponse.meaning(of: error, response)
        }
        refreshToken = tokens.refreshToken
        result = SessionResponse.outcome(tokens, response)
        // There is no token that could be lost, so a malformed response is reported at once.
        if refreshToken == nil, case .failure(let error) = result { throw error }
    }

    /// The second step: the content. Throws if it cannot be used.
    public func outcome() throws(SupabaseError) -> Outcome { try result.get() }

    /// The second step, if only a session is acceptable. Throws otherwise.
    public func session() throws(SupabaseError) -> SupabaseSession {
        guard case .session(let session) = try result.get() else {
            throw .invalid(reason: "no access_token although a session was expected")
        }
        return session
    }

    private static func meaning(of error: OAuthError, _ response: HTTPResponse) -> SupabaseError {
        switch error {
        case .invalid(_, let reason): .invalid(reason: reason)
        case .unavailable(_, let status, let seconds): .unavailable(status: status, retryAfter: seconds)
        case .failing(let errorResponse, let seconds): .unavailable(status: errorResponse.status, retryAfter: seconds)
        default: .invalid(reason: "an error in a successful response (HTTP \(response.status))")
        }
    }

    private static func outcome(_ tokens: TokenResponse, _ response: HTTPResponse) -> Result<Outcome, SupabaseError> {
        do throws(SupabaseError) {
            let object = try ErrorReading.object(response)
            guard object["access_token"] == nil || object["access_token"] == .null, tokens.refreshToken == nil else {
                return .success(.session(try session(tokens, object)))
            }
            if let user = SupabaseUser(reading: object) { return .success(.user(user)) }
            // Status and message as in `{"code": "200", "msg": "Confirmation link accepted. …"}`; `code` is a number in
            // other versions.
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
            throw .invalid(reason: "a response that is not a session")
        }
        return try SupabaseSession(set, object)
    }
}

/// What the response's header fields say about a session. It is only used to explain what happened and is not trusted.
public struct SessionTrace: Sendable, Equatable {
    /// Why the server accepted an older refresh token again.
    public enum ReuseCause: String, Sendable {
        case concurrentRefresh = "concurrent-refresh"
        case failedToSave = "fail-to-save"
        case alwaysAllowed = "always-allow"
    }

    public let userID: String?
    public let sessionID: String?
    /// How many refresh tokens the session has had, for tokens of the second form.
    public let counter: Int?
    /// Nil if the token was the current one, or the server does not say.
    public let reuse: ReuseCause?

    init(reading fields: HTTPFields) {
        userID = fields["sb-auth-user-id"].flatMap { PlainText.isUUID($0) ? $0 : nil }
        sessionID = fields["sb-auth-session-id"].flatMap { PlainText.isUUID($0) ? $0 : nil }
        counter = fields["sb-auth-refresh-token-counter"].flatMap { Int($0) }
        reuse = fields["sb-auth-refresh-token-reuse-cause"].flatMap(ReuseCause.init(rawValue:))
    }
}
