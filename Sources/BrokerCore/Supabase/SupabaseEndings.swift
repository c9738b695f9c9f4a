internal import SupabaseAuth

/// Sessions that nobody holds any more, or never did: their server is told, where that harms nobody.
extension Broker {
    /// The server made a session for a sign-in that was refused here. It would live on, and nobody would know of it.
    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
    }

    /// Opens a session. The one that it replaces at a Supabase project is ended there by its own token; if the project
    /// cannot be reached, later.
    func open(
        _ session: Session, for account: Account, switchingSubject: Bool, told kind: BrokerEvent.Kind? = nil
    ) async throws(BrokerError) {
        let opened = await sessionManager.open(session, for: account, switchingSubject: switchingSubject, told: kind)
        endReplaced(try opened.get())
    }

    /// Has a session that another one replaced ended at its server.
    func endReplaced(_ replaced: Closed?) {
        guard let replaced else { return }
        work.start { await revocations.deliver(replaced) }
    }
}

extension SessionManager {
    func takeOrphans() -> [Closed] { residue.takeEnded() }

    /// The daemon goes, and with it the sessions that were to leave nothing behind.
    func endEphemeral() -> [Closed] {
        for lane in lanes.values {
            // What a service fetched is fetched again, and its apps may still be using it.
            guard let session = lane.state.session, session.isEphemeral, !session.isOfService else { continue }
            residue.end(session, of: lane.account)
            take(.dropped, lane.id)
        }
        residue.endMemoryOnly()
        return takeOrphans()
    }

    /// Signed in, but the first token waits until it is proved: the account says so from the start.
    func waiting(for session: Session, _ account: Account) -> BrokerError? {
        guard session.project?.isProved == false, session.tokens[.own] == nil else { return nil }
        return (provider(account) as? SupabaseProvider).map { .provider(.unproved(host: $0.host)) }
    }

    /// Shows a failure that nobody waits for any more.
    func show(_ error: BrokerError, _ name: AccountName) {
        if let id = lanes[name]?.id { take(.noticed(error, nil), id) }
    }
}

extension SessionManager.Lane {
    /// The session that another one of its project takes the place of, and that the server is to end; nil where nothing
    /// is replaced, or the same session only got other tokens.
    func replaced(by session: Session) -> Closed? {
        guard let held = state.session, let former = held.project?.sessionID, let next = session.project?.sessionID,
            former != next
        else { return nil }
        return Closed(account: account, session: held, retirement: nil)
    }
}
