internal import Cryptography
internal import Secrets
internal import SessionVault

/// How a host that has opened its local vault gets the hosts' key: it has it, was given it, or is the first and makes it.
struct Opening: Sendable {
    let vault: SharedVault

    /// Shows in the status why the rows cannot be used, if it fails.
    func run() async throws(VaultError) {
        do throws(VaultError) {
            try await vault.inTurn(vault.joining.slot) { @Sendable _ throws(VaultError) in try await becomeMember() }
            await vault.listUnread()
            await vault.showLock(nil)
        } catch {
            await vault.showLock(error)
            throw error
        }
    }

    private func becomeMember() async throws(VaultError) {
        let found = try await Membership.stored(in: vault.membershipSlot, of: vault.local)
        if let found, found.isConfirmed {
            let record = try await vault.joining.record()
            vault.hosts.use(record?.isAccepted == true ? record?.password : nil)
            return await vault.use(found)
        }
        let (identity, record) = try await vault.joining.identify()
        // What was made here counts if the database had no other key meanwhile.
        if let found, try await confirm(found, record) { return }
        if let given = try vault.joining.given(identity, record) {
            guard try await confirm(given, record) else { throw VaultError.noKey }
            return
        }
        // The first host makes the key. Which one is the first is decided by the database.
        let row = try await vault.read([Membership.markRow])
        guard row.isEmpty else { throw VaultError.noKey }
        let made = Membership(
            dataKey: Secret(bytes: vault.random(SealedBox.keyLength)), owner: identity.ownerID, host: identity.name,
            isConfirmed: false)
        try await vault.local.store(made.encoded(), in: vault.membershipSlot)
        guard try await confirm(made, record) else { throw VaultError.noKey }
    }

    /// Adopts a membership if its key is the one that the database knows, or the first. If it is another one, what was
    /// stored of it is removed.
    private func confirm(_ made: Membership, _ record: JoiningRecord?) async throws(VaultError) -> Bool {
        let mark = try made.mark()
        let putting = try await vault.ask { rows throws(RowError) in
            try await rows.put(mark, in: Membership.markRow, version: 0, lease: nil, overrides: false)
        }
        if case .refused(let row) = putting, row?.sealed != mark {
            try await vault.local.remove(vault.membershipSlot)
            return false
        }
        var confirmed = made
        confirmed.isConfirmed = true
        try await vault.adopt(confirmed)
        // For those who list the hosts. If it fails, the list alone is wrong.
        if let record, let own = try? record.seal(made.dataKey, of: vault.place.role, owner: made.owner) {
            _ = try? await vault.hosts.give(key: own, to: vault.place.role)
        }
        return true
    }
}
