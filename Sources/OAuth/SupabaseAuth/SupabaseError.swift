/// Why a project's response cannot be used. Contains statuses, checked codes and checked messages, never a body, URL or
/// token.
public enum SupabaseError: Error, Sendable, Equatable {
    /// An error response of the project, in any of its forms.
    case refused(ErrorResponse)
    /// Status 408, 425, 5xx, or an error of the gateway: the request may succeed later. `retryAfter` in seconds, if
    /// given.
    case unavailable(status: Int, retryAfter: Int?)
    /// The response is not one of a Supabase project: a web page, a redirect, a malformed or missing body. The reason
    /// is a text of Ringback, not of the server.
    case invalid(reason: String)
    /// The URL or the key does not belong to a running project. The reason is a text of Ringback, not of the server.
    case misconfigured(reason: String)

    /// An error response.
    public struct ErrorResponse: Error, Sendable, Equatable {
        /// One of ``SupabaseCode/all``, another code of the server, or `unknown`.
        public let code: String
        /// The HTTP status; 0 for an error in a callback.
        public let status: Int
        /// The message of the server, a hook or a trigger, in any language.
        public let message: String?
        /// Why a password is too weak: `length`, `characters`, `pwned`.
        public let weaknesses: [String]
        /// Seconds, from a header or the message.
        public let retryAfter: Int?
        /// SQLSTATE (five characters) or a code of PostgREST, if the database has rejected the request.
        public let databaseCode: String?

        /// Creates an error response from checked texts.
        public init(
            code: String, status: Int, message: String? = nil, weaknesses: [String] = [], retryAfter: Int? = nil,
            databaseCode: String? = nil
        ) {
            self.code = code
            self.status = status
            self.message = message
            self.weaknesses = weaknesses
            self.retryAfter = retryAfter
            self.databaseCode = databaseCode
        }
    }

    /// The response is about another user than the session.
    public static let ofOtherUser = SupabaseError.invalid(reason: "another user than the session's")

    /// The code, if this is an error response.
    public var code: String? {
        if case .refused(let errorResponse) = self { errorResponse.code } else { nil }
    }

    /// Seconds until the request may be repeated, if given.
    public var retryAfter: Int? {
        switch self {
        case .refused(let errorResponse): errorResponse.retryAfter
        case .unavailable(_, let seconds): seconds
        case .invalid, .misconfigured: nil
        }
    }

    /// True if the same request may succeed later without any action.
    public var isTransient: Bool {
        switch self {
        case .unavailable, .invalid: true
        case .refused(let errorResponse): [409, 429].contains(errorResponse.status) || errorResponse.status >= 500
        case .misconfigured: false
        }
    }
}

extension SupabaseError.ErrorResponse {
    /// True if the access token was not accepted: refresh once and repeat the request. The server has the same error
    /// code for expired and forged tokens. PostgREST has its own codes for this.
    public var asksForRefresh: Bool {
        let isOfTables = databaseCode.map { ["PGRST301", "PGRST303"].contains($0) } ?? false
        return (code == "bad_jwt" || isOfTables) && (status == 401 || status == 403)
    }

    /// True if a request with an access token showed that the session has ended.
    public var endsSession: Bool {
        ["session_not_found", "session_expired"].contains(code) && (400..<500).contains(status)
    }
}

/// What the error of a refresh means for the session.
public enum RefreshVerdict: Sendable, Equatable {
    /// Why a session has ended.
    public enum Cause: String, Sendable {
        /// The server does not know the refresh token or has ended the session.
        case ended
        /// The user is banned or was deleted.
        case userGone
    }

    /// The error proves that the session has ended: delete it.
    case dead(Cause)
    /// The refresh token was used before. Read the vault again and try a newer token once, if there is one; otherwise
    /// delete the session.
    case reused
    /// The error does not prove that the session has ended: keep it and try again, after `retryAfter` seconds if given.
    case transient(retryAfter: Int?)
    /// Keep the session and tell the user: the URL or key is wrong, or the project is paused.
    case misconfigured

    /// The verdict for an error.
    public init(_ error: SupabaseError) {
        switch error {
        case .unavailable(_, let seconds): self = .transient(retryAfter: seconds)
        case .invalid: self = .transient(retryAfter: nil)
        case .misconfigured: self = .misconfigured
        case .refused(let errorResponse):
            // These statuses mean that the request may succeed later. The session may be valid, whatever the body says.
            guard (400..<500).contains(errorResponse.status), ![408, 409, 425, 429].contains(errorResponse.status)
            else {
                self = .transient(retryAfter: errorResponse.retryAfter)
                return
            }
            switch errorResponse.code {
            case "refresh_token_not_found", "session_not_found", "session_expired", "validation_failed",
                "invalid_client", "invalid_grant":
                self = .dead(.ended)
            case "user_banned", "user_not_found": self = .dead(.userGone)
            case "refresh_token_already_used": self = .reused
            // Other codes may come from hooks, so they do not prove that the session has ended.
            default: self = .transient(retryAfter: errorResponse.retryAfter)
            }
        }
    }
}
