internal import HTTPMessages
public import Secrets

/// How an authorization response comes back (OAuth 2.0 Multiple Response Type Encoding Practices section 2.1, OAuth 2.0
/// Form Post Response Mode). The raw values are those of `response_mode`.
public enum ResponseMode: String, Sendable, CaseIterable {
    case query
    case formPost = "form_post"
}

/// An authorization request (RFC 6749 section 4.1.1, RFC 7636, OpenID Connect Core section 3.1.2.1). The parameters
/// that protect the response are set here and cannot be overridden by additional parameters.
public struct AuthorizationRequest: Sendable {
    /// Parameters that only this type sets. Apps and configurations must not give them.
    public static let reservedParameters: Set<String> = [
        "client_id", "client_secret", "redirect_uri", "redirect_to", "response_type", "response_mode", "state", "nonce",
        "scope", "scopes", "code_challenge", "code_challenge_method", "code_verifier", "request", "request_uri",
        "resource",
    ]

    public let endpoint: String
    public let clientID: String
    public let redirectURI: String
    public let scopes: [String]
    public let state: Secret
    /// Sent only with the scope `openid`, because only an ID token can repeat it.
    public let nonce: Secret?
    /// S256, see ``PKCE/challenge``.
    public let codeChallenge: String
    /// `form_post` or another mode; nil for the default, `query`.
    public let responseMode: ResponseMode?
    /// The resource that the token is for (RFC 8707).
    public let resource: String?
    /// Parameters of the account or the app, in order.
    public let additionalParameters: [(String, String)]
    /// Their `max_age` in seconds, which the ID token must satisfy; nil if there is none.
    public let maxAge: Int?

    /// Throws `.misconfigured` if an additional parameter is reserved, repeated or has no name, or if `max_age` is not
    /// a number.
    public init(
        endpoint: String, clientID: String, redirectURI: String, scopes: [String], state: Secret, nonce: Secret?,
        codeChallenge: String, responseMode: ResponseMode? = nil, resource: String? = nil,
        additionalParameters: [(String, String)] = []
    ) throws(OAuthError) {
        var names = AuthorizationRequest.reservedParameters
        for (name, _) in additionalParameters {
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .misconfigured(reason: "an authorization parameter is reserved, repeated or without a name")
            }
        }
        maxAge = try additionalParameters.first { $0.0 == "max_age" }.map { _, text throws(OAuthError) in
            // The ID token is checked against it later, so it must be understood here.
            guard let seconds = Int(text), seconds >= 0 else {
                throw .misconfigured(reason: "max_age is not a number of seconds")
            }
            return seconds
        }
        self.endpoint = endpoint
        self.clientID = clientID
        self.redirectURI = redirectURI
        self.scopes = scopes
        self.state = state
        self.nonce = scopes.contains("openid") ? nonce : nil
        self.codeChallenge = codeChallenge
        self.responseMode = responseMode
        self.resource = resource
        self.additionalParameters = additionalParameters
    }

    /// The authorization URL. An existing query of the endpoint is kept (RFC 6749 section 3.1).
    public func url() -> String { url(with: parameters) }

    /// All parameters in order.
    var parameters: [(String, String)] {
        var parameters = [
            ("response_type", "code"), ("client_id", clientID), ("redirect_uri", redirectURI),
        ]
        if !scopes.isEmpty { parameters.append(("scope", scopes.joined(separator: " "))) }
        parameters.append(("state", state.revealed()))
        if let nonce { parameters.append(("nonce", nonce.revealed())) }
        parameters += [("code_challenge", codeChallenge), ("code_challenge_method", "S256")]
        if let responseMode { parameters.append(("response_mode", responseMode.rawValue)) }
        if let resource { parameters.append(("resource", resource)) }
        parameters += additionalParameters
        return parameters
    }

    func url(with parameters: [(String, String)]) -> String { WebURL.appending(parameters, to: endpoint) }
}
