public import RingbackBase

/// The end of the session at the provider (OpenID Connect RP-Initiated Logout 1.0, section 2): a page for the user's
/// browser, to which that session belongs. Others can see the URL: it is an argument of the browser and stays in its
/// history.
public struct EndSessionRequest: Sendable, Equatable {
    public let endpoint: String
    public let clientID: String
    /// The user's ID token. An expired one is accepted too.
    public let idTokenHint: Secret?
    /// The user to sign out, if there is no ID token.
    public let logoutHint: String?
    /// Where the browser is sent afterwards; it must be registered at the provider.
    public let redirectURI: String?
    /// Not checked. It is sent because the page at the redirect URI, which belongs to another party, may expect it.
    public let state: Secret
    /// The maximum in bytes: many servers and proxies limit the request line to 8 KiB.
    private static let longestURL = 7_500

    /// If both hints are given, only the ID token is sent.
    public init(
        endpoint: String, clientID: String, idTokenHint: Secret? = nil, logoutHint: String? = nil,
        redirectURI: String? = nil, state: Secret
    ) {
        self.endpoint = endpoint
        self.clientID = clientID
        self.idTokenHint = idTokenHint
        self.logoutHint = idTokenHint == nil ? logoutHint : nil
        self.redirectURI = redirectURI
        self.state = state
    }

    /// The URL to open. An ID token that would make it too long is left out; the provider's page then asks the user.
    public func url() -> String {
        let whole = url(with: idTokenHint)
        return whole.utf8.count > EndSessionRequest.longestURL ? url(with: nil) : whole
    }

    /// True if the URL contains the ID token.
    public var showsIDToken: Bool {
        idTokenHint != nil && url(with: idTokenHint).utf8.count <= EndSessionRequest.longestURL
    }

    private func url(with hint: Secret?) -> String {
        var parameters: [(String, String)] = []
        if let hint { parameters.append(("id_token_hint", hint.revealed())) }
        parameters.append(("client_id", clientID))
        if let logoutHint { parameters.append(("logout_hint", logoutHint)) }
        if let redirectURI { parameters.append(("post_logout_redirect_uri", redirectURI)) }
        parameters.append(("state", state.revealed()))
        return WebURL.appending(parameters, to: endpoint)
    }
}

extension WebURL {
    /// The endpoint with parameters added. An existing query is kept (RFC 6749 section 3.1).
    static func appending(_ parameters: [(String, String)], to endpoint: String) -> String {
        let hasQuery = endpoint.utf8.contains(UInt8(ascii: "?"))
        let separator = !hasQuery ? "?" : endpoint.hasSuffix("?") || endpoint.hasSuffix("&") ? "" : "&"
        return endpoint + separator + FormEncoding.encode(parameters)
    }
}

/// Revocation of a token (RFC 7009).
public enum RevocationRequest {
    /// The kind of token, for servers with separate stores (RFC 7009 section 2.1).
    public enum Hint: String, Sendable {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    public static func build(
        token: Secret, hint: Hint, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form([("token", token.revealed()), ("token_type_hint", hint.rawValue)], to: endpoint, by: registration)
    }
}

/// The result of a revocation.
public enum RevocationOutcome: Sendable, Equatable {
    /// The token is revoked, or was not valid any more.
    case revoked
    /// The provider does not support revoking such tokens.
    case unsupported

    /// Reads the response (RFC 7009 section 2.2). Throws `.refused`, `.unavailable` (try again) or `.invalid`.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .revocation)
        if (200..<300).contains(response.status) {
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
