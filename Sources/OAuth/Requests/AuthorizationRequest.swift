internal import HTTPMessages
public import Secrets

/// The question that the browser carries to the provider (RFC 6749 section 4.1.1, RFC 7636, OpenID Connect Core
/// section 3.1.2.1). What binds the answer to us is set here and cannot be overridden by extra parameters.
public struct AuthorizationRequest: Sendable {
    /// Parameters that are set here and nowhere else; apps and configurations may not give them.
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
    /// Sent only with the scope `openid`: without an ID token nothing would answer it.
    public let nonce: Secret?
    /// S256, see ``PKCE/challenge``.
    public let codeChallenge: String
    /// `form_post` or another; nil for the provider's usual `query`.
    public let responseMode: String?
    /// The API the token is for (RFC 8707).
    public let resource: String?
    /// What the account or the app adds, in order.
    public let additionalParameters: [(String, String)]
    /// The `max_age` among them, in seconds, which the ID token must agree with; nil if none is asked for.
    public let maxAge: Int?

    /// Throws `.misconfigured` if an additional parameter is reserved, repeated or nameless, or a `max_age` is no number.
    public init(
        endpoint: String, clientID: String, redirectURI: String, scopes: [String], state: Secret, nonce: Secret?,
        codeChallenge: String, responseMode: String? = nil, resource: String? = nil,
        additionalParameters: [(String, String)] = []
    ) throws(OAuthError) {
        var names = AuthorizationRequest.reservedParameters
        for (name, _) in additionalParameters {
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .misconfigured(reason: "an authorization parameter is reserved, repeated or without a name")
            }
        }
        maxAge = try additionalParameters.first { $0.0 == "max_age" }.map { _, text throws(OAuthError) in
            // What is asked for is checked later: a text that only the provider understands could not be.
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

    /// The URL to open. A query that the endpoint already has is kept as it is (RFC 6749 section 3.1).
    public func url() -> String { url(with: parameters) }

    /// All that is asked, in order.
    var parameters: [(String, String)] {
        var parameters = [
            ("response_type", "code"), ("client_id", clientID), ("redirect_uri", redirectURI),
        ]
        if !scopes.isEmpty { parameters.append(("scope", scopes.joined(separator: " "))) }
        parameters.append(("state", state.revealed()))
        if let nonce { parameters.append(("nonce", nonce.revealed())) }
        parameters += [("code_challenge", codeChallenge), ("code_challenge_method", "S256")]
        if let responseMode { parameters.append(("response_mode", responseMode)) }
        if let resource { parameters.append(("resource", resource)) }
        parameters += additionalParameters
        return parameters
    }

    func url(with parameters: [(String, String)]) -> String { WebURL.appending(parameters, to: endpoint) }
}
