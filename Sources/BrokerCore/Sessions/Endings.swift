/// Sessions that nobody holds any more, or never did: their provider is told, where that harms nobody.
extension Broker {
    /// The provider gave a session to a sign-in that was refused or cancelled here. It would live on, and nobody would
    /// know of it.
    ///
    /// Some providers have one grant for all sessions of a user and revoke all of it with any token of it. So nothing is
    /// revoked while another session of the same user is held, unless the provider tells its sessions apart.
    func giveBack(_ session: Session, of account: Account) async {
        if account.provider(with: tools).family(of: session) == nil,
            await sessionManager.holdsSession(ofUserOf: session, boundAs: account)
        {
            return
        }
        endUnheld(session, of: account)
    }

    /// Has a session that nobody holds ended at its provider.
    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
    }

    /// Opens a session. The one that it replaces is ended at the provider by its own token, where the provider tells the
    /// two apart; if the vault cannot be written or the provider cannot be reached, later.
    func open(_ session: Session, for account: Account, _ opening: SessionOpening) async throws(BrokerError) {
        defer { endReplaced() }
        try await sessionManager.open(session, for: account, opening)
    }

    /// Has the sessions that others replaced ended at their providers.
    func endReplaced() { work.start { await revocations.deliverReplaced() } }
}

extension SessionManager {
    func takeOrphans() -> [Closed] { residue.takeEnded() }

    /// Sessions that others replaced, and whose providers are to be told now.
    func takeReplaced() -> [Closed] { residue.takeReplaced() }

    /// The daemon goes, and with it the sessions that were to leave nothing behind.
    func endEphemeral() -> [Closed] {
        for lane in lanes.values {
            // The apps of a configured session may still be using its tokens.
            guard let session = lane.state.session, session.isEphemeral, !session.isConfigured else { continue }
            residue.end(session, of: lane.account)
            take(.dropped, lane.id)
        }
        residue.endMemoryOnly()
        return takeOrphans()
    }

    /// True if a session of the same user is held under the same provider and client.
    func holdsSession(ofUserOf session: Session, boundAs account: Account) -> Bool {
        lanes.values.contains { lane in
            lane.account.binding == account.binding && lane.state.session?.isSameUser(as: session) == true
        }
    }

    /// Shows a failure that nobody waits for any more.
    func show(_ error: BrokerError, _ name: AccountName) {
        if let id = lanes[name]?.id { take(.noticed(error, nil), id) }
    }
}
