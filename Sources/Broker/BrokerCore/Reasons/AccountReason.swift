/// Why a request cannot be done with these accounts.
public enum AccountReason: Sendable, Equatable {
    /// More than one account has the issuer.
    case issuerShared([AccountName])
    /// The vault has no session of this name that belongs to no configured account.
    case noUnconfiguredSession(AccountName)
    /// The account is configured again, so that its session is not removed.
    case configuredAgain(AccountName)
}
