/// Why a provider's answer cannot be used. Holds names, statuses and checked codes: never a body, a URL or a token.
public enum OAuthError: Error, Sendable, Equatable {
    /// Which of the provider's answers.
    public enum Answer: String, Sendable {
        case metadata, keys, authorization, token, userinfo, revocation, registration
        case pushedAuthorization = "pushed authorization"
        case deviceAuthorization = "device authorization"
    }

    /// The answer broke its format or its promises; `reason` is our own sentence.
    case invalid(Answer, reason: String)
    /// An ID token failed a check of OpenID Connect Core section 3.1.3.7 or 12.2; `claim` names what failed.
    case invalidIDToken(claim: String, reason: String)
    /// The provider said no in OAuth's words (RFC 6749 sections 4.1.2.1 and 5.2).
    case refused(Refusal)
    /// 408, 425, 429 or 5xx, or the provider's own word for it: try later. `retryAfter` in seconds.
    case unavailable(Answer, status: Int, retryAfter: Int?)
    /// The provider failed (5xx) and said why in OAuth's words: try later, as for `unavailable`. `retryAfter` in seconds.
    case failing(Refusal, retryAfter: Int?)
    /// The configuration does not fit this provider; `reason` is our own sentence.
    case misconfigured(reason: String)

    /// An error answer, its words checked (printable ASCII, bounded).
    public struct Refusal: Error, Sendable, Equatable {
        /// `invalid_grant`, `access_denied`, ...
        public let code: String
        public let message: String?
        /// The HTTP status, 0 for an authorization response.
        public let status: Int

        public init(code: String, message: String?, status: Int) {
            self.code = code
            self.message = message
            self.status = status
        }
    }

    /// What to do about it.
    public enum Remedy: Sendable, Equatable {
        /// Later, the same request may succeed; seconds, where the provider said so.
        case retry(after: Int?)
        /// The grant is dead.
        case signInAgain
        case fixConfiguration
        /// The provider is at fault: nothing the person can do but try again.
        case reportToProvider
    }

    public var remedy: Remedy {
        switch self {
        case .invalid, .invalidIDToken: .reportToProvider
        case .unavailable(_, _, let retryAfter), .failing(_, let retryAfter): .retry(after: retryAfter)
        case .misconfigured: .fixConfiguration
        case .refused(let refusal):
            switch refusal.code {
            // Proof of a dead grant is the token endpoint's own answer (RFC 6749 section 5.2; some say it with 200):
            // not a word in a browser's redirect, nor one at a status that a proxy makes up.
            case "invalid_grant" where [200, 400, 401, 403].contains(refusal.status): .signInAgain
            case "temporarily_unavailable", "server_error", "slow_down": .retry(after: nil)
            // The last three are GitHub's and Google's.
            case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
                "unsupported_response_type", "incorrect_client_credentials", "redirect_uri_mismatch",
                "deleted_client":
                .fixConfiguration
            default: .reportToProvider
            }
        }
    }
}

extension OAuthError {
    /// True if an ID token, which the provider signed for this client, is of another subject than the session.
    public var provesOtherSubject: Bool { self == .invalidIDToken(claim: "sub", reason: IDTokenParties.otherSubject) }
}
