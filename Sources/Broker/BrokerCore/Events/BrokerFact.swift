public import RingbackBase
public import SessionVault

/// Why new tokens are requested.
public enum RefreshReason: String, Sendable, CaseIterable {
    /// Ahead of time, or after a start, a resume or an outage.
    case scheduled
    /// A caller needed a token that is valid for longer.
    case needed
    /// Like `needed`, for the program at an exposed socket: the request must not cost the session any scope.
    case exposed
    /// A caller asked for it, perhaps because a server had refused the token.
    case requested
    /// Another request to the provider needs a newer access token first.
    case change
}

/// An entry of the audit log and the metrics. No secrets, and of a provider's text only checked codes and messages.
public enum BrokerFact: Sendable {
    public enum Outcome: String, Sendable, CaseIterable {
        case completed, failed, cancelled, expired
    }

    /// How Ringback learned that an identity is linked.
    public enum IdentitySight: Sendable, Equatable {
        case asked
        /// Found by comparison, without a request here: the provider linked it, or it was linked elsewhere.
        case inferred
        /// It was linked already when the user first signed in here. `at` is when it was made, by the provider's clock.
        case former(at: WallInstant)
    }

    /// The user chose how to sign in: a provider's name, `email`, `phone`, or the method.
    case signInChosen(AccountName, way: String)
    case signInStarted(AccountName, method: SignInMethod)
    case signInEnded(
        AccountName, method: SignInMethod, Outcome, duration: Duration, error: BrokerError?,
        endsElsewhere: Bool = false)
    /// A callback with the key of a pending sign-in was refused. The sign-in keeps waiting.
    case callbackRefused(AccountName, Reason)
    /// The session of a sign-in was taken over. `replacing` is the subject of the former session, if there was one.
    case sessionOpened(AccountName, subject: String?, replacing: String??)
    case sessionClosed(AccountName, subject: String?)
    /// A program waits for a sign-in that the user was not offered: a program that can show its page should. `by` is
    /// what the waiting program calls itself, which is not checked.
    case signInWanted(AccountName, by: String? = nil)
    /// The session itself ends at this time. Only a sign-in brings another.
    case sessionEnding(AccountName, at: WallInstant)
    /// The provider has ended the session: its error response proves it.
    case sessionEnded(
        AccountName, subject: String?, unheard: EndProof.UnheardRequest? = nil, error: BrokerError? = nil)
    /// A request to the token endpoint is about to be made.
    case refreshStarted(AccountName, reason: RefreshReason)
    case refreshSucceeded(AccountName)
    case refreshFailed(AccountName, BrokerError)
    /// A request for a downscoped token failed. It says nothing about the session, which is kept as it is.
    case downscopingFailed(AccountName, BrokerError)
    /// A refresh brought a good access token and an ID token that cannot be used. Recorded once for each cause.
    case idTokenDropped(AccountName, BrokerError)
    /// A request for a downscoped token cost the session these scopes; a sign-in brings them back.
    case scopesLost(AccountName, [String])
    /// The provider refused a proof (RFC 9449) for its time: its clock is ahead of ours by `seconds`. Proofs are dated by
    /// its clock from now on.
    case clockDiffers(AccountName, host: String, seconds: Int)
    /// A revocation could not be sent to the provider. It is tried again.
    case revocationPostponed(AccountName, BrokerError)
    case revocationDelivered(AccountName)
    /// The provider has no endpoint for revocations: the session's tokens stay valid until they expire.
    case revocationNotOffered(AccountName)
    /// A revocation is not tried again: too many error responses, or nothing of the session may be kept.
    case revocationAbandoned(AccountName)
    /// An identity at a provider was linked to the user, or unlinked.
    case identityLinked(AccountName, provider: String, IdentitySight = .asked)
    case identityUnlinked(AccountName, provider: String, isInferred: Bool = false)
    /// The user has one more passkey, or one less.
    case passkeyRegistered(AccountName, passkey: String)
    case passkeyRemoved(AccountName, passkey: String)
    case vaultOpened(keySource: KeySourceChoice?)
    case vaultLocked
    case vaultRefused(BrokerError)
    case vaultRekeyed(from: KeySourceChoice?, to: KeySourceChoice?)
    /// The database of a vault that hosts share went away, or is back.
    case databaseTurned(DatabaseTurn)
    case clientRegistered(AccountName, issuer: String, clientID: String)
    /// Deleted at the provider, if it offers a way to, and here. `clientID` is nil for one that could not be used.
    case registrationDeleted(AccountName, clientID: String?)
    /// A registration that could not be used is still at the provider.
    case registrationLeft(AccountName, BrokerError)
    /// Another program listens for a scheme's links now. The process numbers come from the kernel.
    case linkListenerReplaced(scheme: String, by: PolicyPeer?, former: PolicyPeer?)
    /// The scheme's command was started, since no app listened.
    case applicationStarted(scheme: String)
    /// The sentence says why. It contains no link.
    case applicationNotStarted(scheme: String, reason: String)
    case consent(ConsentNews)
}
