public import HTTPMessages
public import Secrets

/// Telling the provider that a token is to die (RFC 7009).
public enum RevocationRequest {
    /// Which token it is, for servers that look in two places (RFC 7009 section 2.1).
    public enum Hint: String, Sendable {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    /// A POST of the token, with the client's authentication.
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

/// How far a revocation went. Anything else is an error; `.unavailable` is worth another try.
public enum RevocationOutcome: Sendable, Equatable {
    /// The token is dead, or was before.
    case revoked
    /// The provider does not revoke such tokens: done as far as possible.
    case unsupported

    /// Reads the answer (RFC 7009 section 2.2).
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .revocation)
        guard !(200..<300).contains(response.status) else {
            self = .revoked
            return
        }
        let object = try ResponseReader.object(in: response, of: .revocation)
        guard let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .revocation) else {
            throw .invalid(.revocation, reason: "HTTP \(response.status) without an OAuth error")
        }
        switch refusal.code {
        case "unsupported_token_type", "invalid_request": self = .unsupported
        // The standard wants 200 for a token that is unknown or dead already; some servers say so instead.
        case "invalid_token", "invalid_grant": self = .revoked
        case "temporarily_unavailable", "server_error", "slow_down":
            throw ResponseReader.unavailable(response, .revocation)
        default: throw .refused(refusal)
        }
    }
}
