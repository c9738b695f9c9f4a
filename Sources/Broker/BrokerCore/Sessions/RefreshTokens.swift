public import RingbackBase

/// The refresh tokens of a session, of which there may be several while a response is not validated.
extension Session {
    /// The refresh tokens worth presenting, the newest first.
    public var refreshTokens: [Secret] {
        [unvalidated?.token, unvalidated?.presented, refreshToken].compactMap { $0 }
    }

    /// Keeps these and no others, the newest first. Of more than three, the two newest and the oldest are kept: the
    /// oldest is the last one whose response was validated.
    mutating func keep(refreshTokens: [Secret]) {
        let newer = refreshTokens.dropLast()
        refreshToken = refreshTokens.last
        unvalidated = newer.first.map { Unvalidated($0, presented: newer.dropFirst().first) }
    }

    /// The session while a response to the refresh token `presented` is not validated: the token that came with it, if
    /// it is another one, comes before those that are held.
    func keeping(_ token: Secret?, presented: Secret) -> Session {
        var session = self
        let known = Array(refreshTokens.drop { $0 != presented })
        let new = token.flatMap { $0 == presented ? nil : $0 }
        session.keep(refreshTokens: [new].compactMap { $0 } + (known.isEmpty ? [presented] : known))
        session.rotation = new != nil ? .rotates : .keeps
        return session
    }

    /// The session once the response is validated: only `token` is kept. If it came with a downscoped token, the
    /// presented refresh token is kept as well, until a refresh has shown which scopes the new one has.
    func settlingRefreshTokens(_ token: Secret, _ presented: Secret) -> Session {
        var session = self
        session.keep(refreshTokens: downscopedTo == nil || token == presented ? [token] : [token, presented])
        return session
    }

    /// Takes over the refresh token of the session that this one replaces, if this one has none. Both sessions must
    /// have the same subject and token endpoint, and the old one must cover every scope of the new one. Google sends a
    /// refresh token with the user's first consent only. Later sign-ins need no consent and bring none, so the client
    /// has to keep the first one.
    ///
    /// - Parameter isSameFamily: true if a refresh token of one session also renews the tokens of the other.
    mutating func keepRefreshToken(of held: Session, isSameFamily: Bool) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSameUser(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes), isSameFamily
        else { return }
        keep(refreshTokens: held.refreshTokens)
        downscopedTo = held.downscopedTo
        rotation = held.rotation
        end = held.end
    }

    /// True if the newest refresh token came with a downscoped token, and no refresh has shown its scopes yet.
    var mayHoldDownscopedToken: Bool { unvalidated != nil && downscopedTo != nil }

    /// The members of ``scope``.
    public var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
}

extension TokenKey {
    /// The scopes that the provider says a token has beyond those that were requested, sorted; empty if none were
    /// named.
    public func excess(of token: AccessToken) -> [String] {
        guard let scopes, token.isScopeStated else { return [] }
        return Set((token.scope ?? "").split(separator: " ").map(String.init))
            .filter { !TokenDownscoping.isCovered($0, by: scopes) }.sorted()
    }
}
