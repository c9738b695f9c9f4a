internal import SupabaseAuth

/// Sessions that nobody holds any more, or never did: their server is told, where that harms nobody.
extension Broker {
    /// The server made a session for a sign-in that was refused here. It would live on, and nobody would know of it.
    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
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

    /// Shows a failure that nobody waits for any more.
    func show(_ error: BrokerError, _ name: AccountName) {
        if let id = lanes[name]?.id { take(.noticed(error, nil), id) }
    }
}
