public import RingbackBase

/// A token response, read in two steps. The first step finds the refresh token, which may be a rotated one: it must be
/// stored durably before anything else can fail. It is taken from every response that has a readable one, even if the
/// status or the JSON is malformed (see ``RefreshTokenSalvage``). The second step checks the rest.
public struct TokenResponse: Sendable {
    /// With only its characters checked; nil if the old one remains valid.
    public let refreshToken: Secret?
    private let outcome: Result<TokenSet, OAuthError>

    /// The first step. From a truncated response only the refresh token is taken. Throws:
    /// - `.refused`: an OAuth error response, with any status below 500 (GitHub sends them with 200).
    /// - `.unavailable`: status 408, 425, 429 or 5xx, or an error code that means "later".
    /// - `.failing`: status 5xx with an OAuth error.
    /// - `.invalid`: not a response of a token endpoint: a web page, a redirect, an empty or malformed body.
    public init(reading response: HTTPResponse) throws(OAuthError) {
        let isSuccess = (200..<300).contains(response.status)
        let object: JSONObject
        do throws(OAuthError) {
            try ResponseReader.checkStatus(response, of: .token)
            object = try ResponseReader.tokenObject(in: response)
        } catch {
            guard let salvaged = RefreshTokenSalvage.token(in: response) else { throw error }
            refreshToken = salvaged
            outcome = .failure(error)
            return
        }
        if isSuccess, let token = TokenText.secret(object["refresh_token"]?.string, allowsSpace: true) {
            // From here on nothing throws: even a response with both an error and tokens must not lose this token.
            refreshToken = token
            outcome = TokenResponse.rest(of: object, token)
            return
        }
        if let errorResponse = try ResponseReader.errorResponse(in: object, status: response.status, of: .token) {
            throw TokenResponse.meaning(of: errorResponse, object, response)
        }
        refreshToken =
            isSuccess ? RefreshTokenSalvage.token(nestedIn: .object(object)) : RefreshTokenSalvage.token(ofSet: object)
        guard isSuccess else {
            let error = OAuthError.invalid(.token, reason: "HTTP \(response.status) without an OAuth error")
            guard refreshToken != nil else { throw error }
            outcome = .failure(error)
            return
        }
        outcome = TokenResponse.rest(of: object, nil)
    }

    /// The second step. Throws if the tokens cannot be used, or are bound to a key otherwise than `use` says.
    public func tokenSet(under use: DPoPUse = .off) throws(OAuthError) -> TokenSet {
        let tokens = try outcome.get()
        try use.check(tokens)
        return tokens
    }

    /// The codes for "later" belong to RFC 6749 section 4.1.2.1, but servers also use them here.
    private static func meaning(
        of errorResponse: OAuthError.ErrorResponse, _ object: JSONObject, _ response: HTTPResponse
    ) -> OAuthError {
        switch errorResponse.code {
        case "temporarily_unavailable", "server_error", "slow_down": ResponseReader.unavailable(response, .token)
        // GitHub's code for an invalid refresh token, sent with status 200.
        case "bad_refresh_token":
            .refused(.init(code: "invalid_grant", message: errorResponse.message, status: errorResponse.status))
        case "invalid_grant":
            .refused(
                .init(
                    code: livingGrant(object["suberror"]?.string) ?? errorResponse.code, message: errorResponse.message,
                    status: errorResponse.status))
        default: .refused(errorResponse)
        }
    }

    /// Microsoft also sends `invalid_grant` for valid grants, with a `suberror` that says what is missing: a second
    /// factor, another device or place, or consent. Another code keeps the session. `bad_token` and others end it.
    private static func livingGrant(_ suberror: String?) -> String? {
        switch suberror {
        case "consent_required": "consent_required"
        case "basic_action", "additional_action", "message_only", "protection_policy_required": "interaction_required"
        default: nil
        }
    }

    private static func rest(of object: JSONObject, _ refreshToken: Secret?) -> Result<TokenSet, OAuthError> {
        switch object["error"] {
        case nil, .null?, .string("")?: break
        default: return .failure(.invalid(.token, reason: "an error and a refresh token in one response"))
        }
        return Result { () throws(OAuthError) in try TokenSet(parsing: object, refreshToken: refreshToken) }
    }
}
