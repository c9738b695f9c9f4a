/// What happens to a lane, and what follows.
extension LaneState {
    /// What the vault said.
    enum Loaded: Sendable {
        case session(Session, Copy, isUrgent: Bool)
        case absent(Absence)
        case untouchable(BrokerError)
        /// It could not be asked; it is asked again.
        case failed(BrokerError)
    }

    enum Outcome: Sendable {
        /// `isNews`: a reload brought the account back, so that a session is a sign-in to those who listen.
        case loaded(Loaded, isNews: Bool)
        /// A sign-in yielded a session. The error is why it could not be saved.
        case opened(Session, Copy, BrokerEvent.Kind, BrokerError?)
        case signInBegan
        case refreshBegan(TokenKey, Promise<Result<Void, BrokerError>>)
        /// A new refresh token is held beside its predecessor; the rest of its response is not validated yet.
        case rotated(Session, Copy, BrokerError?)
        case renewed(Session, Copy, BrokerError?)
        case changed(Session, Copy, BrokerEvent.Kind?, BrokerError?)
        /// `isOfRequest`: what failed was one request for a downscoped token, which says nothing about the session.
        case failed(BrokerError, isOfRequest: Bool)
        case refreshEnded(TokenKey, Result<Void, BrokerError>)
        case changeBegan
        case changeEnded
        /// The session should be refreshed at once.
        case becameUrgent
        /// The provider proved the session dead.
        case dead(code: String?)
        case saved
        case notSaved
        case signOutBegan
        /// The session left its slot. A service is left with a session that has no tokens.
        case closed(leaving: Session?)
        case signOutEnded
        /// The daemon ends, and with it a session that is nowhere but in memory.
        case dropped
        /// The vault was locked: everything is forgotten but the waits that the provider asked for.
        case locked
        /// The account was removed, or is bound otherwise now: this lane is no more.
        case replaced
        /// Something failed that nobody waits for; it is shown.
        case noticed(BrokerError, BrokerEvent.Kind?)
        case networkReturned
        /// The configuration changed what the provider may have refused.
        case mended
        /// The configuration was read again, after somebody mended something perhaps.
        case reloaded
    }

    enum Effect: Sendable {
        /// Readers see ``LaneState/visible`` from now on.
        case publish
        /// The lane's tasks are planned anew.
        case schedule
        /// The vault is asked again after a while.
        case retryLoading
        /// Whoever waits for the vault's word is woken.
        case wake
        case record(BrokerFact)
        case post(BrokerEvent.Kind, Session?, BrokerError? = nil)
    }
}
