internal import SessionVault

/// Writes sessions to the vault, in a turn of the account's lane.
extension SessionManager {
    /// Writes to the vault. If that fails, memory still holds the session, the write is repeated until it succeeds, and
    /// the error is shown. Returns the error.
    func save(
        _ session: Session, _ account: Account, as kind: VaultWrite = .result, endingAll: Bool = false
    ) async -> BrokerError? {
        guard !session.isEphemeral else {
            // The lane may have been set aside. Then the copy that is kept there is updated.
            residue.update(session, of: account)
            return nil
        }
        do throws(BrokerError) {
            try await write(session, in: account.slot, as: kind, endingAll: endingAll)
            return nil
        } catch {
            if lanes[account.name]?.account.slot != account.slot || lanes[account.name]?.state.isLoaded != true {
                // No lane has it any more: the lane was set aside meanwhile. A lane that has taken its place has not
                // been loaded yet, and takes the session up from here.
                residue.keep(unwritten: session, in: account.slot)
                schedule.set(.save(account.name), at: clock.bootInstant + Schedule.saveRetryInterval)
            }
            return error
        }
    }

    /// If the session replaces another one, the vault keeps that one until its provider has been told.
    func write(
        _ session: Session, in slot: VaultSlot, as kind: VaultWrite = .result, endingAll: Bool = false
    ) async throws(BrokerError) {
        let isReplacing = residue.replaced(in: slot).holdsStored
        var retired: RetiredEntry?
        do throws(BrokerError) {
            retired = try await store.write(
                session, in: slot, as: kind, isReplacing: isReplacing, endingAll: endingAll)
        } catch {
            guard isReplacing, isOpen else { throw error }
            // Keeping the former record needs more room than storing the session alone. The session matters more.
            try await store.write(session, in: slot, as: kind, endingAll: endingAll)
        }
        residue.settle(slot, retirement: await retirement(of: retired, in: slot))
    }

    /// The vault's identifier of the session that was replaced.
    ///
    /// A write that failed may have taken effect all the same. Then the next one retires a record of the session in
    /// use, which must not be ended.
    private func retirement(of entry: RetiredEntry?, in slot: VaultSlot) async -> String? {
        guard let entry else { return nil }
        if let former = try? SessionRecord.decode(entry.text, by: clock),
            residue.replaced(in: slot).isStored(former, with: tools)
        {
            return entry.id
        }
        try? await vault.discard(entry.id)
        return nil
    }
}
