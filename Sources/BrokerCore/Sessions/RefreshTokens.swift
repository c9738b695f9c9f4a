/// Refresh tokens that a provider does not give again. Google gives one with a person's first consent, and at later
/// sign-ins, which need no consent, it counts on the client to have kept it.
extension Session {
    /// Takes over the refresh token of the session that this one replaces, if it has none of its own: the same person's,
    /// at the same place, and good for all that this sign-in yielded.
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
