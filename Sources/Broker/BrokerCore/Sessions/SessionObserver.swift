/// Is told what happens to sessions, and does what only one kind of account needs. The session manager does not know
/// what an observer does.
public protocol SessionObserver: Sendable {
    /// A session has been opened, in the place of `former` if there was one. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: another operation than a sign-in opened it.
    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async

    /// A session has changed. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: the change was an operation that may change the user's identities.
    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async

    /// A session is about to leave its lane. Called in the turn of the account's lane.
    func leaving(_ session: Session, of account: Account) async

    /// An event is about to be posted. Called in the same turn as the change that it reports.
    func willPost(_ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionAccess)

    /// The account was removed, or its session can no longer be read.
    func forget(_ account: AccountName)
}
