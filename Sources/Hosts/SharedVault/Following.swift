internal import SessionVault

/// What other hosts do is followed, and what the database does not have is sent when it is back.
extension SharedVault {
    /// Follows the rows' changes until it is cancelled.
    public func follow() async {
        let news = RowNews()
        await withDiscardingTaskGroup { group in
            group.addTask { while let keys = await news.next() { await self.look(at: keys) } }
            group.addTask { await Tending(wakes: self.wakes).run { await self.tend() } }
            for await key in rows.changes { news.note(key) }
            news.finish()
            group.cancelAll()
        }
    }

    /// Rows may have changed; nil: any of them.
    func look(at keys: [RowKey?]) async {
        // Everything is looked at again when the connection is back.
        let isAll = keys.contains(nil)
        if isAll { outage.tryNow() }
        guard membership != nil else { return askToOpen() }
        let known = isAll ? slots.all : keys.compactMap { $0.flatMap { names[$0] } }
        await Look().look(at: known, by: self)
        if isAll || known.contains(where: { slots[$0]?.isOverlooked == true }) { wakes.continuation.yield() }
    }

    /// Sends what the database does not have, and copies what the local vault does not have. Returns how long to wait before
    /// the next attempt; nil if nothing is left.
    public func tend() async -> Duration? { await Round().run(by: self) }
}

/// Rows that may have changed are read, and compared with what this host has.
struct Look: Sendable {
    /// How many rows are read at once.
    private static let batch = 128

    func look(at known: [VaultSlot], by vault: isolated SharedVault) async {
        let idle = known.filter { vault.slots[$0]?.isLookedAt(at: vault.now()) == true }
        for start in stride(from: 0, to: idle.count, by: Look.batch) {
            let part = Array(idle[start..<min(start + Look.batch, idle.count)])
            let keys = part.compactMap { vault.slots[$0]?.key }
            guard let rows = try? await vault.read(keys) else {
                overlook(Array(idle[start...]), by: vault)
                break
            }
            for slot in part {
                // A slot that is waited for, perhaps for seconds, delays no other one.
                if vault.turns.isTaken(slot) {
                    Task {
                        await look(at: slot, rows, by: vault)
                        vault.wakes.continuation.yield()
                    }
                } else {
                    await look(at: slot, rows, by: vault)
                }
            }
        }
        overlook(known.filter { vault.slots[$0]?.isLookedAt(at: vault.now()) == false }, by: vault)
    }

    /// They are looked at later.
    private func overlook(_ known: [VaultSlot], by vault: isolated SharedVault) {
        for slot in known { vault.slots[slot]?.isOverlooked = true }
    }

    private func look(at slot: VaultSlot, _ rows: [RowKey: SharedRow], by vault: isolated SharedVault) async {
        do throws(VaultError) {
            let isChanged = try await vault.inTurn(slot) { vault throws(VaultError) -> Bool in
                guard let state = vault.slots[slot], state.isLookedAt(at: vault.now()) else {
                    overlook([slot], by: vault)
                    return false
                }
                let isChanged = try await vault.compare(rows[state.key], with: slot)
                return isChanged || vault.slots[slot]?.base != vault.slots[slot]?.entry?.content.name
            }
            guard isChanged else { return }
            vault.noteRemovals(in: slot)
            vault.othersChanges.continuation.yield(slot)
        } catch {
            // What the row has cannot be used, until it is written again.
            if error != .unreachable(.olderRow), error != .unreachable(.foreignRow) { overlook([slot], by: vault) }
        }
    }
}

/// What is to be done once: what the database does not have is sent, what the local vault does not have is copied.
struct Round: Sendable {
    /// How many rows are copied before it is seen whether there is something to send.
    private static let copies = 128

    /// Returns how long to wait before the next one; nil if nothing is left.
    func run(by vault: isolated SharedVault) async -> Duration? {
        guard vault.membership != nil else { return nil }
        await readUnread(by: vault)
        for (id, key) in vault.settling { await vault.settle(id, of: key, wakes: false) }
        for slot in vault.slots.unsent where (vault.slots[slot]?.heldUntil ?? .zero) <= vault.now() {
            _ = try? await vault.inTurn(slot) { vault throws(VaultError) in try await vault.sendAndTell(slot) }
        }
        let overlooked = vault.slots.overlooked.filter { vault.slots[$0]?.isBusy(at: vault.now()) == false }
        for slot in overlooked { vault.slots[slot]?.isOverlooked = false }
        await Look().look(at: Array(overlooked), by: vault)
        // Nothing else may be asked for hours, and the status would say that the database is away.
        if vault.outage.reason != nil, vault.settling.isEmpty, vault.slots.unsent.isEmpty {
            _ = try? await vault.read([Membership.markRow])
        }
        // A copy ends an announcement. So it is not made while a request may be under way, nor one that began meanwhile.
        let idle = vault.slots.uncopied.lazy.filter { vault.slots[$0]?.isBusy(at: vault.now()) == false }
        for slot in idle.prefix(Round.copies) {
            await vault.inTurn(slot) { vault in
                if vault.slots[slot]?.isBusy(at: vault.now()) == false { await vault.copy(slot) }
            }
        }
        return vault.slots.pause(isSettling: !vault.settling.isEmpty, outage: vault.outage, at: vault.now())
    }

    private func readUnread(by vault: isolated SharedVault) async {
        guard !vault.unread.isEmpty else { return }
        _ = await vault.load(Array(vault.unread))
        vault.unread = []
        vault.show()
    }
}
