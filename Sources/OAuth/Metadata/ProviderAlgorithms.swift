public import Cryptography

/// What a provider signs with, as far as we can check it. The metadata say it, never a token's own header.
extension ProviderMetadata {
    /// What ID tokens may be signed with. What the metadata do not say is RS256 (OpenID Connect Discovery section 3).
    public var allowedIDTokenAlgorithms: Set<SignatureAlgorithm> {
        Set(idTokenSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? [.rs256])
    }

    /// What signed userinfo may be signed with: what the metadata say, or as ID tokens.
    public var allowedUserinfoAlgorithms: Set<SignatureAlgorithm> {
        let stated = userinfoSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? []
        return stated.isEmpty ? allowedIDTokenAlgorithms : Set(stated)
    }

    /// Throws `.misconfigured` if no ID token of this provider could be checked, which is better said before a person
    /// signs in: its issuer or its keys are not known, or it signs in ways that prove nothing to us. HS256 and its
    /// kin are made with the client's secret: whoever holds it can sign as the provider.
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
