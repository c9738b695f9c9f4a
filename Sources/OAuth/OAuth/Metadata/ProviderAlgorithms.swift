public import Cryptography

/// The provider's signature algorithms that we can verify. They come from the metadata, never from a token's header.
extension ProviderMetadata {
    /// The algorithms allowed for ID tokens; RS256 if the metadata do not say (OpenID Connect Discovery section 3).
    public var allowedIDTokenAlgorithms: Set<SignatureAlgorithm> {
        Set(idTokenSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? [.rs256])
    }

    /// The algorithms allowed for signed userinfo; those for ID tokens if the metadata do not say.
    public var allowedUserinfoAlgorithms: Set<SignatureAlgorithm> {
        let stated = userinfoSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? []
        return stated.isEmpty ? allowedIDTokenAlgorithms : Set(stated)
    }

    /// Throws `.misconfigured` if no ID token of this provider could be verified, so that the user learns it before the
    /// sign-in: the issuer or the keys are unknown, or the algorithms are unsupported. HS256 and the like are
    /// unsupported: they use the client secret, so whoever knows it could sign as the provider.
    public func checkIDTokens() throws(OAuthError) {
        guard issuer != nil, jwksURI != nil else {
            throw .misconfigured(
                reason: "with the scope openid, the provider's issuer and jwks endpoint are needed to check ID tokens")
        }
        guard let stated = idTokenSigningAlgorithms, allowedIDTokenAlgorithms.isEmpty else { return }
        let names = CheckedText.code(stated.prefix(8).joined(separator: ", "))
        throw .misconfigured(
            reason: "the provider signs ID tokens with \(names.isEmpty ? "nothing" : names), which cannot be checked "
                + "with a published key; RS, PS and ES 256, 384 and 512 and EdDSA can. Choose another algorithm for "
                + "this client at the provider, or leave the scope openid out")
    }
}
