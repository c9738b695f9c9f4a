/// Why a provider's response cannot be used. Contains names, statuses and checked codes, never a body, URL or token.
public enum OAuthError: Error, Sendable, Equatable {
    /// The kind of response.
    public enum Response: String, Sendable {
        case metadata, keys, authorization, token, userinfo, revocation, registration
        case pushedAuthorization = "pushed authorization"
        case deviceAuthorization = "device authorization"
        case protectedResource = "protected resource metadata"
    }

    /// The response is malformed or contradicts the metadata; `reason` is our own text.
    case invalid(Response, reason: String)
    /// An ID token failed a check of OpenID Connect Core section 3.1.3.7 or 12.2; `claim` names the failed part.
    case invalidIDToken(claim: String, reason: String)
    /// An ID token, which the provider signed for this client, is of another subject than the session.
    case otherSubject
    /// An OAuth error response (RFC 6749 sections 4.1.2.1 and 5.2).
    case refused(ErrorResponse)
    /// Try later: status 408, 425, 429 or 5xx, or an error code with that meaning. `retryAfter` in seconds.
    case unavailable(Response, status: Int, retryAfter: Int?)
    /// Try later: status 5xx with an OAuth error. `retryAfter` in seconds.
    case failing(ErrorResponse, retryAfter: Int?)
    /// The configuration does not fit this provider; `reason` is our own text.
    case misconfigured(reason: String)

    /// An error response with checked texts (printable ASCII, limited length).
    public struct ErrorResponse: Error, Sendable, Equatable {
        /// `invalid_grant`, `access_denied`, ...
        public let code: String
        public let message: String?
        /// The HTTP status; 0 for an authorization response.
        public let status: Int

        public init(code: String, message: String?, status: Int) {
            self.code = code
            self.message = message
            self.status = status
        }
    }

    /// What can be done about an error.
    public enum Remedy: Sendable, Equatable {
        /// The same request may succeed later; `after` in seconds, if the provider said so.
        case retry(after: Int?)
        /// The grant is not valid any more.
        case signInAgain
        case fixConfiguration
        /// An error of the provider. The user can only try again.
        case reportToProvider
    }

    public var remedy: Remedy {
        switch self {
        case .invalid, .invalidIDToken, .otherSubject: .reportToProvider
        case .unavailable(_, _, let retryAfter), .failing(_, let retryAfter): .retry(after: retryAfter)
        case .misconfigured: .fixConfiguration
        case .refused(let errorResponse):
            switch errorResponse.code {
            // Only the token endpoint itself can prove that a grant is invalid (RFC 6749 section 5.2; some send it with
            // 200). An authorization response in the browser or a status that a proxy may create is no proof.
            case "invalid_grant" where [200, 400, 401, 403].contains(errorResponse.status): .signInAgain
            case "temporarily_unavailable", "server_error", "slow_down": .retry(after: nil)
            // The last three are codes of GitHub and Google.
            case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
                "unsupported_response_type", "incorrect_client_credentials", "redirect_uri_mismatch",
                "deleted_client":
                .fixConfiguration
            default: .reportToProvider
            }
        }
    }
}
