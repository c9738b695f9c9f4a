internal import SessionVault

/// Sessions that the daemon does not hold: they are ended at their provider, unless that would end another session.
extension Broker {
    /// Ends the session of a sign-in that was refused or cancelled here. It would stay valid at the provider otherwise.
    ///
    /// Some providers have one grant for all sessions of a user and revoke all of it with any of its tokens. So nothing
    /// is revoked while another session of the same user is held, unless the provider distinguishes its sessions.
    func giveBack(_ session: Session, of account: Account) async {
        if account.provider(with: tools).family(of: session) == nil,
            await sessionManager.holdsSession(ofUserOf: session, boundAs: account)
        {
            return
        }
        endUnheld(session, of: account)
    }

    /// Ends a session at its provider that the daemon does not hold.
    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session)) }
    }

    /// Opens a session. The session that it replaces is ended at the provider by its own token, if the provider
    /// distinguishes the two. If the vault cannot be written or the provider cannot be reached, that is done later.
    func open(_ session: Session, for account: Account, _ opening: SessionOpening) async throws(BrokerError) {
        defer { endReplaced() }
        try await sessionManager.open(session, for: account, opening)
        // A change of the user who is signed in ends no sign-in.
        if opening.event != .userUpdated { await flowRegistry.endMails(of: account.name) }
    }

    /// Ends replaced sessions at their providers.
    func endReplaced() { work.start { await revocations.deliverReplaced() } }
}

extension SessionManager {
    /// The provider has proven that the session has ended. It is removed, and a record that says so takes its place.
    ///
    /// - Parameter code: the provider's own code for the cause, where it has more than one.
    func end(
        _ lane: Lane, _ code: String?, message: String? = nil, unheard: EndProof.UnheardRequest? = nil
    ) async -> BrokerError {
        // If nothing of the session may be written, its end is not recorded either.
        if lane.state.session?.isEphemeral != true { await store.recordEnd(code, message, in: lane.account.slot) }
        residue.settle(lane.account.slot)
        take(.dead(code: code, message: message, unheard: unheard), lane.id)
        return .sessionExpired(lane.account.name, word: code, message: message)
    }

    func takeOrphans() -> [Closed] { residue.takeEnded() }

    /// Replaced sessions that are to be ended at their providers now.
    func takeReplaced() -> [Closed] { residue.takeReplaced() }

    /// Drops the sessions that are not stored, since the daemon ends. They are returned to be ended at their providers.
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

    /// Shows an error for which no caller waits.
    func show(_ error: BrokerError, _ name: AccountName) {
        if let id = lanes[name]?.id { take(.noticed(error, nil), id) }
    }
}
