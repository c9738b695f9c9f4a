/// Some providers publish metadata at both places, and one of the two documents says less: revocation stands in RFC
/// 8414's, say, and userinfo in OpenID Connect's.
extension ProviderMetadata {
    /// True if something that is used is missing, so that the other place is worth a request.
    public var isWorthCompleting: Bool {
        jwksURI == nil || userinfoEndpoint == nil || revocationEndpoint == nil
    }

    /// These metadata, with what they lack taken from the same provider's document at the other place; what they say
    /// stands. Nothing is taken from a document of another issuer, or with other endpoints for signing in: it describes
    /// another server, and a token must not be sent there.
    ///
    /// A promise or a demand counts, whichever document makes it: leaving one out only weakens a check.
    public func completed(by other: ProviderMetadata) -> ProviderMetadata {
        guard let issuer, let theirs = other.issuer, issuer.isSameBytes(as: theirs),
            idTokenIssuer == other.idTokenIssuer, tokenEndpoint.isSameBytes(as: other.tokenEndpoint),
            authorizationEndpoint.isSameBytes(as: other.authorizationEndpoint)
        else { return self }
        var whole = self
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
        return whole
    }
}
