public import Secrets

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
        let scope = unvalidated?.downscopedTo
        unvalidated = newer.first.map { Unvalidated($0, presented: newer.dropFirst().first, downscopedTo: scope) }
    }

    /// The session while a response to the refresh token `presented` is not validated: the token that came with it, if
    /// it is another one, comes before those that are held.
    func keeping(_ token: Secret?, presented: Secret) -> Session {
        var session = self
        let known = Array(refreshTokens.drop { $0 != presented })
        let new = token.flatMap { $0 == presented ? nil : $0 }
        session.keep(refreshTokens: [new].compactMap { $0 } + (known.isEmpty ? [presented] : known))
        session.rotation = new != nil ? .rotates : .keeps
        session.unvalidated?.downscopedTo = nil
        return session
    }

    /// The session once the response is validated: only `token` is kept. If it came with a downscoped token, the
    /// presented refresh token is kept as well, until a refresh has shown which scopes the new one has.
    func settlingRefreshTokens(_ token: Secret, _ presented: Secret) -> Session {
        var session = self
        session.keep(
            refreshTokens: unvalidated?.downscopedTo == nil || token == presented ? [token] : [token, presented])
        return session
    }

    /// What a new session takes over from the one that it replaces.
    ///
    /// - Parameter isSameFamily: true if a refresh token of one session also renews the tokens of the other.
    mutating func inherit(from held: Session, isSameFamily: Bool) {
        refusesDownscoping = held.refusesDownscoping
        keepRefreshToken(of: held, isSameFamily: isSameFamily)
    }

    /// Takes over the refresh token of the session that this one replaces, if this one has none. Both sessions must
    /// have the same subject and token endpoint, and the old one must cover every scope of the new one. Google sends a
    /// refresh token with the user's first consent only. Later sign-ins need no consent and bring none, so the client
    /// has to keep the first one.
    private mutating func keepRefreshToken(of held: Session, isSameFamily: Bool) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSameUser(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes), isSameFamily
        else { return }
        keep(refreshTokens: held.refreshTokens)
        unvalidated?.downscopedTo = held.unvalidated?.downscopedTo
        rotation = held.rotation
        end = held.end
    }

    /// The members of ``scope``.
    public var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
}

extension BrokerError {
    /// No request is made.
    static func downscopingRefused(_ name: AccountName) -> BrokerError {
        .methodUnsupported(.session(.losesScopes(name)))
    }
}

extension TokenKey {
    /// The scopes that the provider says a token has beyond those that were requested, sorted; empty if none were
    /// named.
    public func excess(of token: AccessToken) -> [String] {
        guard let scopes, token.isScopeStated else { return [] }
        return Set((token.scope ?? "").split(separator: " ").map(String.init)).subtracting(scopes).sorted()
    }
}
