/// Something that the records (audit log, metrics) are told. No secrets, and no text of a provider but checked codes.
public enum BrokerFact: Sendable {
    /// How a sign-in ended.
    public enum Outcome: String, Sendable, CaseIterable {
        case completed, failed, cancelled, expired
    }

    case signInStarted(AccountName, method: String)
    case signInEnded(AccountName, method: String, Outcome, duration: Duration, error: BrokerError?)
    /// A sign-in's session is held. `replacing` is the subject of the session that was held before, if there was one.
    case sessionOpened(AccountName, subject: String?, replacing: String??)
    /// Signed out here.
    case sessionClosed(AccountName, subject: String?)
    /// The provider proved the session dead.
    case sessionEnded(AccountName, subject: String?)
    /// A request to the token endpoint is about to be made.
    case refreshStarted(AccountName)
    case refreshSucceeded(AccountName)
    case refreshFailed(AccountName, BrokerError)
    /// The provider could not be told of a sign-out; it is tried again until it hears.
    case revocationPostponed(AccountName, BrokerError)
    case revocationDelivered(AccountName)
    /// The provider said no so often that it is not asked any more.
    case revocationAbandoned(AccountName)
    case vaultOpened(keySource: String)
    case vaultLocked
    /// An attempt to open it failed.
    case vaultRefused(BrokerError)
    case vaultRekeyed(from: String, to: String)
}
