/// Is told what happens to sessions, for the sake of what only one kind of account has. The session manager carries an
/// observer without knowing what it does.
public protocol SessionObserver: Sendable {
    /// A session has been opened, in the place of `former` if there was one. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: another operation than a sign-in asked for it.
    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async

    /// A session has changed. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: the change was an operation that may change the user's identities.
    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async

    /// A session is about to leave its lane. Called in the turn of the account's lane.
    func leaving(_ session: Session, of account: Account) async

    /// An event is about to be posted. Called in the same turn as the change that it tells of.
    func willPost(_ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionAccess)

    /// The account is no more, or its session is out of everybody's reach.
    func forget(_ account: AccountName)
}
