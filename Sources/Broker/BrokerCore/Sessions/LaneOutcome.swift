internal import SessionVault

/// What happens to a lane, and what follows.
extension LaneState {
    /// What reading the vault yielded.
    enum Loaded: Sendable {
        case session(HeldSession)
        case absent(Absence)
        case untouchable(BrokerError)
        /// The vault could not be read. It is read again later.
        case failed(BrokerError)
    }

    enum Outcome: Sendable {
        /// `isAfterReload`: a reload of the configuration brought the account back, so that listeners get a `signed_in`
        /// event.
        case loaded(Loaded, isAfterReload: Bool)
        /// Another host that shares the vault has changed the slot. This is what the vault has now.
        case changedElsewhere(Loaded)
        /// A sign-in yielded a session. The error is shown for the account, such as that the session could not be
        /// saved.
        case opened(HeldSession, BrokerEvent.Kind, BrokerError?)
        case signInBegan
        case refreshBegan(TokenKey, Promise<Result<Void, BrokerError>>)
        /// A new refresh token is held beside its predecessor; the rest of its response is not validated yet.
        /// The error is why it could not be saved, as in the next two.
        case rotated(Session, BrokerError?)
        case renewed(Session, BrokerError?)
        case changed(Session, BrokerEvent.Kind?, BrokerError?)
        /// `isOfRequest`: what failed was one request for a downscoped token, which says nothing about the session.
        case failed(BrokerError, isOfRequest: Bool)
        /// The error is nil if it succeeded.
        case refreshEnded(TokenKey, BrokerError?)
        case changeBegan
        case changeEnded
        /// The session should be refreshed at once.
        case becameUrgent
        /// The provider has ended the session: its error response proves it. `unheard` may explain why.
        case dead(code: String?, message: String? = nil, unheard: EndProof.UnheardRequest? = nil)
        case saved
        case notSaved
        case signOutBegan
        /// The session was signed out. What the configuration makes is left: a session that has no tokens.
        case closed(leaving: Session?)
        case signOutEnded
        /// The daemon ends, and with it a session that is in memory only.
        case dropped
        /// The vault was locked. Everything is forgotten but the back-off.
        case locked
        /// The account was removed, or is bound to another provider or client now: this lane has ended.
        case replaced
        /// Something failed that no caller waits for; the error is shown.
        case noticed(BrokerError, BrokerEvent.Kind?)
        case networkReturned
        /// The configuration changed. That may have fixed what the provider refused.
        case configurationFixed
        /// The configuration was read again. That may have fixed a problem, where the account's settings have changed.
        case reloaded(isChanged: Bool)
        /// What a setting names can be used again, such as a file that was missing.
        case settingFixed(UnusableSetting)
    }

    enum Effect: Sendable {
        /// Readers see ``LaneState/visible`` from now on.
        case publish
        /// The lane's tasks are scheduled again.
        case schedule
        /// The vault is read again after a while.
        case retryLoading
        /// Callers that wait for the vault to be read are woken.
        case wake
        case record(BrokerFact)
        case post(BrokerEvent.Kind, Session?, BrokerError? = nil)
    }
}
