public import HTTPMessages
public import Secrets

/// Revocation of a token (RFC 7009).
public enum RevocationRequest {
    /// The kind of token, for servers with separate stores (RFC 7009 section 2.1).
    public enum Hint: String, Sendable {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    /// The revocation request, with client authentication.
    public static func build(
        token: Secret, hint: Hint, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("token", token)
        request.appendParameter("token_type_hint", hint.rawValue)
        registration.authenticate(&request)
        return request
    }
}

/// The result of a revocation. Other responses are errors; after `.unavailable` try again.
public enum RevocationOutcome: Sendable, Equatable {
    /// The token is revoked, or was not valid any more.
    case revoked
    /// The provider does not support revoking such tokens.
    case unsupported

    /// Reads the response (RFC 7009 section 2.2). Throws `.refused`, `.unavailable` or `.invalid`.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .revocation)
        guard !(200..<300).contains(response.status) else {
            self = .revoked
            return
        }
        let object = try ResponseReader.object(in: response, of: .revocation)
        guard let errorResponse = try ResponseReader.errorResponse(in: object, status: response.status, of: .revocation)
        else {
            throw .invalid(.revocation, reason: "HTTP \(response.status) without an OAuth error")
        }
        switch errorResponse.code {
        case "unsupported_token_type", "invalid_request": self = .unsupported
        // The standard requires 200 for an unknown or invalid token, but some servers send these errors.
        case "invalid_token", "invalid_grant": self = .revoked
        case "temporarily_unavailable", "server_error", "slow_down":
            throw ResponseReader.unavailable(response, .revocation)
        default: throw .refused(errorResponse)
        }
    }
}
