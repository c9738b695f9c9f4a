/// What is known of a provider: its issuer, its endpoints and what it supports (RFC 8414 section 2, OpenID Connect
/// Discovery section 3). Every endpoint in a value of this type is a URL that secrets may be sent to.
public struct ProviderMetadata: Sendable, Equatable {
    /// As configured, byte for byte; nil for a plain OAuth server whose endpoints were given by hand.
    public let issuer: String?
    public let authorizationEndpoint: String
    public let tokenEndpoint: String
    public let jwksURI: String?
    public let userinfoEndpoint: String?
    /// RFC 7009.
    public let revocationEndpoint: String?
    public let endSessionEndpoint: String?
    /// RFC 8628.
    public let deviceAuthorizationEndpoint: String?
    /// RFC 9126.
    public let pushedAuthorizationRequestEndpoint: String?
    /// The provider takes authorization requests only by RFC 9126.
    public let requiresPushedAuthorization: Bool
    /// RFC 7591.
    public let registrationEndpoint: String?
    /// The provider promises an `iss` in every authorization response (RFC 9207).
    public let supportsIssuerInResponse: Bool
    /// Nil if nothing is said: S256 is sent all the same, and its effect is then unknown.
    public let codeChallengeMethods: [String]?
    /// Nil if nothing is said, which means `client_secret_basic`.
    public let tokenEndpointAuthenticationMethods: [String]?
    public let idTokenSigningAlgorithms: [String]?
    public let scopesSupported: [String]?

    /// Metadata by hand, for a server that publishes none. Throws `.misconfigured` for an endpoint that is not https
    /// (or http on loopback), has a fragment or names a user.
    public init(
        issuer: String? = nil, authorizationEndpoint: String, tokenEndpoint: String, jwksURI: String? = nil,
        userinfoEndpoint: String? = nil, revocationEndpoint: String? = nil, endSessionEndpoint: String? = nil,
        deviceAuthorizationEndpoint: String? = nil, pushedAuthorizationRequestEndpoint: String? = nil,
        registrationEndpoint: String? = nil, supportsIssuerInResponse: Bool = false
    ) throws(OAuthError) {
        let endpoints = [
            ("authorization", authorizationEndpoint), ("token", tokenEndpoint), ("jwks", jwksURI),
            ("userinfo", userinfoEndpoint), ("revocation", revocationEndpoint), ("end_session", endSessionEndpoint),
            ("device_authorization", deviceAuthorizationEndpoint),
            ("pushed_authorization_request", pushedAuthorizationRequestEndpoint),
            ("registration", registrationEndpoint),
        ]
        for case (let name, let endpoint?) in endpoints where EndpointRule.url(endpoint) == nil {
            throw .misconfigured(reason: "the \(name) endpoint is not an https URL (or http on loopback)")
        }
        self.issuer = issuer
        self.authorizationEndpoint = authorizationEndpoint
        self.tokenEndpoint = tokenEndpoint
        self.jwksURI = jwksURI
        self.userinfoEndpoint = userinfoEndpoint
        self.revocationEndpoint = revocationEndpoint
        self.endSessionEndpoint = endSessionEndpoint
        self.deviceAuthorizationEndpoint = deviceAuthorizationEndpoint
        self.pushedAuthorizationRequestEndpoint = pushedAuthorizationRequestEndpoint
        self.requiresPushedAuthorization = false
        self.registrationEndpoint = registrationEndpoint
        self.supportsIssuerInResponse = supportsIssuerInResponse
        self.codeChallengeMethods = nil
        self.tokenEndpointAuthenticationMethods = nil
        self.idTokenSigningAlgorithms = nil
        self.scopesSupported = nil
    }

    init(reading document: MetadataDocument, issuer: String) throws(OAuthError) {
        self.issuer = issuer
        authorizationEndpoint = try document.requiredEndpoint("authorization_endpoint")
        tokenEndpoint = try document.requiredEndpoint("token_endpoint")
        jwksURI = try document.endpoint("jwks_uri")
        userinfoEndpoint = try document.endpoint("userinfo_endpoint")
        revocationEndpoint = try document.endpoint("revocation_endpoint")
        endSessionEndpoint = try document.endpoint("end_session_endpoint")
        deviceAuthorizationEndpoint = try document.endpoint("device_authorization_endpoint")
        pushedAuthorizationRequestEndpoint = try document.endpoint("pushed_authorization_request_endpoint")
        requiresPushedAuthorization = document.flag("require_pushed_authorization_requests")
        registrationEndpoint = try document.endpoint("registration_endpoint")
        supportsIssuerInResponse = document.flag("authorization_response_iss_parameter_supported")
        codeChallengeMethods = try document.texts("code_challenge_methods_supported")
        tokenEndpointAuthenticationMethods = try document.texts("token_endpoint_auth_methods_supported")
        idTokenSigningAlgorithms = try document.texts("id_token_signing_alg_values_supported")
        scopesSupported = try document.texts("scopes_supported")
    }
}
