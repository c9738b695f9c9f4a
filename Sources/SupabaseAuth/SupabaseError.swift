/// Why an answer of a project cannot be used. Holds statuses, checked codes and the server's checked words: never a
/// body, a URL or a token.
public enum SupabaseError: Error, Sendable, Equatable {
    /// The project said no, in any of its shapes.
    case refused(Refusal)
    /// 408, 425, 5xx or the gateway's own trouble: the request may succeed later. Seconds, where it says when.
    case unavailable(status: Int, retryAfter: Int?)
    /// No answer of a project's: a page in place of JSON, a redirect, a broken or missing body. The sentence is ours.
    case invalid(reason: String)
    /// The address or the key does not belong to a project that runs. The sentence is ours.
    case misconfigured(reason: String)

    /// A no.
    public struct Refusal: Error, Sendable, Equatable {
        /// One of ``SupabaseCode/all``, or another word of the server's, or `unknown`.
        public let code: String
        /// The HTTP status; 0 where the word came in a callback.
        public let status: Int
        /// The server's words, a hook's or a trigger's among them, in any language.
        public let message: String?
        /// What is wrong with a password: `length`, `characters`, `pwned`.
        public let weaknesses: [String]
        /// Seconds, where the answer or its words say when to come back.
        public let retryAfter: Int?
        /// The five characters of SQLSTATE or the code of the tables' server, where the database refused.
        public let databaseCode: String?

        /// A no whose words are checked.
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

    /// The refusal's code, if this is one.
    public var code: String? {
        if case .refused(let refusal) = self { refusal.code } else { nil }
    }

    /// Seconds until the request is worth repeating, where the answer says.
    public var retryAfter: Int? {
        switch self {
        case .refused(let refusal): refusal.retryAfter
        case .unavailable(_, let seconds): seconds
        case .invalid, .misconfigured: nil
        }
    }

    /// True if the same request may succeed later without anybody doing anything.
    public var isTransient: Bool {
        switch self {
        case .unavailable, .invalid: true
        case .refused(let refusal): [409, 429].contains(refusal.status) || refusal.status >= 500
        case .misconfigured: false
        }
    }
}

extension SupabaseError.Refusal {
    /// True if the server did not take the access token because it is not, or no more, good: one refresh, then the same
    /// request again. The server says the same of an expired token and of a forged one; the tables' server has
    /// codes of its own for both.
    public var asksForRefresh: Bool {
        let isOfTables = databaseCode.map { ["PGRST301", "PGRST303"].contains($0) } ?? false
        return (code == "bad_jwt" || isOfTables) && (status == 401 || status == 403)
    }

    /// True if a request with an access token found the session ended.
    public var endsSession: Bool {
        ["session_not_found", "session_expired"].contains(code) && (400..<500).contains(status)
    }
}

/// What an answer to a refresh says about the session.
public enum RefreshVerdict: Sendable, Equatable {
    /// Why a session is dead.
    public enum Cause: String, Sendable {
        /// The server does not know the token, or ended the session.
        case ended
        /// The person is banned, or is no more.
        case userGone
    }

    /// Proved dead: drop the session.
    case dead(Cause)
    /// Dead unless somebody else used the token: read the vault again, present what is newer there once, then drop.
    case reused
    /// Nothing is proved: keep the session, try again. Seconds, where the answer says when.
    case transient(retryAfter: Int?)
    /// Keep the session and tell the person: the address or the key is wrong, or the project is paused.
    case misconfigured

    /// The verdict of the server's error.
    public init(_ error: SupabaseError) {
        switch error {
        case .unavailable(_, let seconds): self = .transient(retryAfter: seconds)
        case .invalid: self = .transient(retryAfter: nil)
        case .misconfigured: self = .misconfigured
        case .refused(let refusal):
            // Statuses that mean "later" are never taken for a "no", whatever their body says.
            guard (400..<500).contains(refusal.status), ![408, 409, 425, 429].contains(refusal.status) else {
                self = .transient(retryAfter: refusal.retryAfter)
                return
            }
            switch refusal.code {
            case "refresh_token_not_found", "session_not_found", "session_expired", "validation_failed",
                "invalid_client", "invalid_grant":
                self = .dead(.ended)
            case "user_banned", "user_not_found": self = .dead(.userGone)
            case "refresh_token_already_used": self = .reused
            // Hooks answer what they like: no proof.
            default: self = .transient(retryAfter: refusal.retryAfter)
            }
        }
    }
}
