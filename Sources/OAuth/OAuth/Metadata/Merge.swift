/// Some providers publish metadata at both locations, and one of the documents is incomplete. For example, only RFC
/// 8414's has the revocation endpoint.
extension ProviderMetadata {
    /// True if a member that we use is missing, so that the document at the other location should be fetched.
    public var isWorthCompleting: Bool {
        authorizationEndpoint.isEmpty || jwksURI == nil || userinfoEndpoint == nil || revocationEndpoint == nil
    }

    /// A copy in which missing members are taken from the same provider's document at the other location; existing
    /// members are kept. If the other document has another issuer, authorization endpoint or token endpoint, nothing is
    /// taken, because it may describe another server, to which tokens must not be sent.
    ///
    /// A promise or requirement in either document counts, because ignoring one would weaken a check.
    public func completed(by other: ProviderMetadata) -> ProviderMetadata {
        guard let issuer, let theirs = other.issuer, issuer.isSameBytes(as: theirs),
            idTokenIssuer == other.idTokenIssuer, tokenEndpoint.isSameBytes(as: other.tokenEndpoint),
            authorizationEndpoint.isEmpty || other.authorizationEndpoint.isEmpty
                || authorizationEndpoint.isSameBytes(as: other.authorizationEndpoint)
        else { return self }
        var whole = self
        if authorizationEndpoint.isEmpty { whole.authorizationEndpoint = other.authorizationEndpoint }
        whole.jwksURI = jwksURI ?? other.jwksURI
        whole.userinfoEndpoint = userinfoEndpoint ?? other.userinfoEndpoint
        whole.revocationEndpoint = revocationEndpoint ?? other.revocationEndpoint
        whole.endSessionEndpoint = endSessionEndpoint ?? other.endSessionEndpoint
        whole.deviceAuthorizationEndpoint = deviceAuthorizationEndpoint ?? other.deviceAuthorizationEndpoint
        whole.pushedAuthorizationRequestEndpoint =
            pushedAuthorizationRequestEndpoint ?? other.pushedAuthorizationRequestEndpoint
        whole.requiresPushedAuthorization = requiresPushedAuthorization || other.requiresPushedAuthorization
        whole.registrationEndpoint = registrationEndpoint ?? other.registrationEndpoint
        whole.supportsIssuerInResponse = supportsIssuerInResponse || other.supportsIssuerInResponse
        whole.codeChallengeMethods = codeChallengeMethods ?? other.codeChallengeMethods
        whole.tokenEndpointAuthenticationMethods =
            tokenEndpointAuthenticationMethods ?? other.tokenEndpointAuthenticationMethods
        whole.tokenEndpointSigningAlgorithms = tokenEndpointSigningAlgorithms ?? other.tokenEndpointSigningAlgorithms
        whole.responseModes = responseModes ?? other.responseModes
        whole.idTokenSigningAlgorithms = idTokenSigningAlgorithms ?? other.idTokenSigningAlgorithms
        whole.userinfoSigningAlgorithms = userinfoSigningAlgorithms ?? other.userinfoSigningAlgorithms
        whole.scopesSupported = scopesSupported ?? other.scopesSupported
        whole.grantTypes = grantTypes ?? other.grantTypes
        whole.supportsClientMetadataDocuments =
            supportsClientMetadataDocuments || other.supportsClientMetadataDocuments
        return whole
    }
}
