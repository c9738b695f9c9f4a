/// Refresh tokens that a provider sends only once. Google sends one with the user's first consent. Later sign-ins need
/// no consent and bring none, so the client has to keep the first one.
extension Session {
    /// Takes over the refresh token of the session that this one replaces, if this one has none. Both sessions must
    /// have the same subject and token endpoint, and the old one must cover every scope of the new one.
    ///
    /// - Parameter isSameFamily: a refresh token of the one renews the tokens of the other.
    mutating func keepRefreshToken(of held: Session, isSameFamily: Bool) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSamePerson(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes), isSameFamily
        else { return }
        refreshToken = held.refreshToken
        unvalidatedRefreshToken = held.unvalidatedRefreshToken
        rotates = held.rotates
        end = held.end
    }

    private var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
}
