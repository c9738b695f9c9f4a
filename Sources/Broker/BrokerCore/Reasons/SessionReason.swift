public import SessionVault

/// Why a session cannot be stored, read, refreshed or asked for a token.
public enum SessionReason: Sendable, Equatable {
    /// The account is signed in as `held`, and the sign-in is by `other`: names or subjects; nil for a user without
    /// either.
    case otherUser(AccountName, held: String?, other: String?)
    /// The caller expected another subject than the session's.
    case otherSubject(AccountName, expected: String)
    /// The provider's token endpoint has left the origin to which the session belongs.
    case endpointMoved(AccountName, origin: String)
    case notLoaded(AccountName)
    /// The vault's record cannot be read.
    case unreadable(AccountName)
    /// A newer version of Ringback sealed the record.
    case newer(AccountName)
    /// The record is of a vault that hosts share, and no database is configured.
    case shared(AccountName)
    /// The refresh was not made, since the vault has no room for a new refresh token.
    case noRoom(cause: VaultReason)
    /// Another host that shares the vault refreshes the session, or may have done so. It is looked at again after this
    /// time at the latest.
    case heldElsewhere(AccountName, wait: Duration)
    /// The provider refused every refresh token, but another host may have received a newer one.
    case endUncertain(AccountName)
    /// There is no refresh token to renew the session with. `advice` says how to get one.
    case notRefreshable(AccountName, advice: Reason?)
    /// There is no refresh token to request a downscoped token with. `advice` says how to get one.
    case notDownscopable(AccountName, advice: Reason?)
    /// The session ends with its access token. `advice` says how to get a refresh token.
    case endsWithToken(AccountName, advice: Reason?)
    /// Scopes that the provider took away when a downscoped token was requested.
    case lostScopes(AccountName, [String])
    /// The provider takes scopes away from the session when a downscoped token is requested.
    case losesScopes(AccountName)
    /// It is not known whether the provider does that, and the program at an exposed socket must not find it out.
    /// `exchange` is the code of the provider's error when a token was to be exchanged instead; nil if it offers no
    /// exchange.
    case mayLoseScopes(AccountName, exchange: String?)
    /// The provider's token had expired when it came.
    case expiredToken
    /// The vault is locked, since the user locked it.
    case vaultLocked
    /// The vault is in memory only: locking it would lose the sessions.
    case vaultInMemory
}
