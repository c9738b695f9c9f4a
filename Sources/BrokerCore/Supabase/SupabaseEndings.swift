internal import SupabaseAuth

/// Sessions that nobody holds any more, or never did: their server is told, where that harms nobody.
extension Broker {
    /// The server made a session for a sign-in that was refused here. It would live on, and nobody would know of it.
    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
    }
}

extension SessionManager {
    func takeOrphans() -> [Closed] {
        defer { orphans = [] }
        return orphans
    }

    /// The daemon goes, and with it the sessions that were to leave nothing behind.
    func endEphemeral() -> [Closed] {
        for (name, lane) in lanes {
            // What a service fetched is fetched again, and its apps may still be using it.
            guard let session = lane.session, session.isEphemeral, !session.isOfService else { continue }
            orphans.append(Closed(account: lane.account, session: session, retirement: nil))
            lanes[name]?.session = nil
            publish(name)
        }
        endShelved()
        return takeOrphans()
    }

    /// Those that were set aside go too: their account may never be back. What they are told to is the server that made
    /// them, as it was configured then.
    func endShelved() {
        orphans += shelved.values
        shelved = [:]
    }

    /// Shows a failure that nobody waits for any more.
    func show(_ error: BrokerError, _ name: AccountName) { lanes[name]?.error = error }
}
