/// The known properties of a provider: issuer, endpoints and supported features (RFC 8414 section 2, OpenID Connect
/// Discovery section 3). Every endpoint here is a URL that secrets may be sent to.
public struct ProviderMetadata: Sendable, Equatable {
    /// As configured, byte for byte; nil for an OAuth server whose endpoints were configured one by one.
    public let issuer: String?
    /// The issuer that ID tokens must have: ``issuer``, except at the location that Microsoft's directories share.
    /// There it is the template `https://login.microsoftonline.com/{tenantid}/v2.0`, see
    /// ``IDTokenExpectations/issuer``.
    public let idTokenIssuer: String?
    /// Empty if none is known: a server that only issues tokens to services, or to other devices.
    public internal(set) var authorizationEndpoint: String
    public let tokenEndpoint: String
    public internal(set) var jwksURI: String?
    public internal(set) var userinfoEndpoint: String?
    /// The member names that the userinfo endpoint uses.
    public internal(set) var userinfoDialect = UserinfoDialect.openID
    /// RFC 7009.
    public internal(set) var revocationEndpoint: String?
    public internal(set) var endSessionEndpoint: String?
    /// RFC 8628.
    public internal(set) var deviceAuthorizationEndpoint: String?
    /// RFC 9126.
    public internal(set) var pushedAuthorizationRequestEndpoint: String?
    /// True if the provider accepts only pushed authorization requests (RFC 9126).
    public internal(set) var requiresPushedAuthorization: Bool
    /// RFC 7591.
    public internal(set) var registrationEndpoint: String?
    /// True if the provider sends `iss` in every authorization response (RFC 9207).
    public internal(set) var supportsIssuerInResponse: Bool
    /// Nil if the metadata do not say. S256 is sent anyway; whether the provider checks it is then unknown.
    public internal(set) var codeChallengeMethods: [String]?
    /// Nil if the metadata do not say, which means `client_secret_basic`.
    public internal(set) var tokenEndpointAuthenticationMethods: [String]?
    /// The algorithms for `private_key_jwt`; nil if the metadata do not say.
    public internal(set) var tokenEndpointSigningAlgorithms: [String]?
    /// The response modes; nil if the metadata do not say, which means query and fragment.
    public internal(set) var responseModes: [String]?
    public internal(set) var idTokenSigningAlgorithms: [String]?
    /// The algorithms of signed userinfo responses; nil if the metadata do not say.
    public internal(set) var userinfoSigningAlgorithms: [String]?
    public internal(set) var scopesSupported: [String]?
    /// Nil if the metadata do not say.
    public internal(set) var grantTypes: [String]?
    /// True if a client id may be the URL of a document that describes the client.
    public internal(set) var supportsClientMetadataDocuments = false
    /// Why members of the document are not usable, in words that begin with their names.
    public internal(set) var unusableMembers: [String] = []

    /// Metadata from the configuration, for a server that publishes none. Throws `.misconfigured` for an endpoint that
    /// is not https (or http on loopback), or has a fragment or user information.
    public init(
        issuer: String? = nil, authorizationEndpoint: String?, tokenEndpoint: String, jwksURI: String? = nil,
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
        self.idTokenIssuer = issuer
        self.authorizationEndpoint = authorizationEndpoint ?? ""
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
        self.tokenEndpointSigningAlgorithms = nil
        self.responseModes = nil
        self.idTokenSigningAlgorithms = nil
        self.userinfoSigningAlgorithms = nil
        self.scopesSupported = nil
    }

    init(reading source: MetadataDocument, issuer: String, idTokenIssuer: String) throws(OAuthError) {
        var document = source
        self.issuer = issuer
        self.idTokenIssuer = idTokenIssuer
        authorizationEndpoint = document.endpoint("authorization_endpoint") ?? ""
        tokenEndpoint = try document.requiredEndpoint("token_endpoint")
        jwksURI = document.endpoint("jwks_uri")
        userinfoEndpoint = document.endpoint("userinfo_endpoint")
        revocationEndpoint = document.endpoint("revocation_endpoint")
        endSessionEndpoint = document.endpoint("end_session_endpoint")
        deviceAuthorizationEndpoint = document.endpoint("device_authorization_endpoint")
        pushedAuthorizationRequestEndpoint = document.endpoint("pushed_authorization_request_endpoint")
        requiresPushedAuthorization = document.flag("require_pushed_authorization_requests")
        registrationEndpoint = document.endpoint("registration_endpoint")
        supportsIssuerInResponse = document.flag("authorization_response_iss_parameter_supported")
        codeChallengeMethods = document.texts("code_challenge_methods_supported")
        tokenEndpointAuthenticationMethods = document.texts("token_endpoint_auth_methods_supported")
        tokenEndpointSigningAlgorithms = document.texts("token_endpoint_auth_signing_alg_values_supported")
        responseModes = document.texts("response_modes_supported")
        idTokenSigningAlgorithms = document.texts("id_token_signing_alg_values_supported")
        userinfoSigningAlgorithms = document.texts("userinfo_signing_alg_values_supported")
        scopesSupported = document.texts("scopes_supported")
        grantTypes = document.texts("grant_types_supported")
        supportsClientMetadataDocuments = document.flag("client_id_metadata_document_supported")
        unusableMembers = document.unusable
    }
}
