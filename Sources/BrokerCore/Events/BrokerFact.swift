/// Why new tokens are asked for.
public enum RefreshReason: String, Sendable {
    /// Ahead of time, or after a start, a resume or an outage.
    case scheduled
    /// A caller needed a token that lives longer.
    case needed
    /// Somebody asked for it, after a server had refused the token perhaps.
    case requested
    /// Something else is to be asked of the provider first.
    case change
}

/// Something that the records (audit log, metrics) are told. No secrets, and no text of a provider but checked codes.
public enum BrokerFact: Sendable {
    /// How a sign-in ended.
    public enum Outcome: String, Sendable, CaseIterable {
        case completed, failed, cancelled, expired
    }

    /// How a link is known.
    public enum IdentitySight: Sendable, Equatable {
        /// Somebody asked for it here.
        case asked
        /// Nobody asked for it here: the server did it in silence, or somebody elsewhere; a comparison shows it.
        case inferred
        /// It was there already when the person first signed in here; made then, in Unix seconds by the server's clock.
        case former(at: Int)
    }

    /// Somebody chose a way in: a provider's name, `email`, `phone`, or the method.
    case signInChosen(AccountName, way: String)
    case signInStarted(AccountName, method: String)
    case signInEnded(AccountName, method: String, Outcome, duration: Duration, error: BrokerError?)
    /// A sign-in's session is held. `replacing` is the subject of the session that was held before, if there was one.
    case sessionOpened(AccountName, subject: String?, replacing: String??)
    /// Signed out here.
    case sessionClosed(AccountName, subject: String?)
    /// A program waits for a sign-in that nobody has asked a person for: whoever can show them its page should offer it.
    case signInWanted(AccountName)
    /// The session itself ends then (Unix seconds); a sign-in alone brings another.
    case sessionEnding(AccountName, at: Int)
    /// The provider proved the session dead.
    case sessionEnded(AccountName, subject: String?)
    /// A request to the token endpoint is about to be made.
    case refreshStarted(AccountName, reason: RefreshReason)
    case refreshSucceeded(AccountName)
    case refreshFailed(AccountName, BrokerError)
    /// A refresh brought a good access token beside an ID token that cannot be used. Told once for each cause.
    case idTokenDropped(AccountName, BrokerError)
    /// A request for a downscoped token cost the session these scopes; a sign-in brings them back.
    case scopesLost(AccountName, [String])
    /// The provider could not be told of a sign-out; it is tried again until it hears.
    case revocationPostponed(AccountName, BrokerError)
    case revocationDelivered(AccountName)
    /// The provider said no so often that it is not asked any more.
    case revocationAbandoned(AccountName)
    /// A provider's account belongs to the person now, or does not any more.
    case identityLinked(AccountName, provider: String, IdentitySight = .asked)
    case identityUnlinked(AccountName, provider: String, isInferred: Bool = false)
    /// The person signs in with one more key, or one less.
    case passkeyRegistered(AccountName, passkey: String)
    case passkeyRemoved(AccountName, passkey: String)
    case vaultOpened(keySource: String)
    case vaultLocked
    /// An attempt to open it failed.
    case vaultRefused(BrokerError)
    case vaultRekeyed(from: String, to: String)
    case clientRegistered(AccountName, issuer: String, clientID: String)
    /// At the provider and here, or here alone where the provider gave no way to. Without a client id it was one that
    /// could not be used.
    case registrationDeleted(AccountName, clientID: String?)
    /// A registration that could not be used is still at the provider.
    case registrationLeft(AccountName, BrokerError)
    /// Another program listens for a scheme's links now; the process numbers are the kernel's word.
    case linkListenerReplaced(scheme: String, by: PolicyPeer?, former: PolicyPeer?)
    /// The scheme's command was started, since no app listened.
    case applicationStarted(scheme: String)
    /// The sentence says why; no link is in it.
    case applicationNotStarted(scheme: String, reason: String)
}
