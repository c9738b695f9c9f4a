internal import SessionVault

/// What other hosts do is followed, and what the database does not have is sent when it is back.
extension SharedVault {
    /// How many rows are read at once.
    private static let batch = 128
    /// How many rows are copied before it is seen whether there is something to send.
    private static let copies = 128

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
        await look(at: known)
        if isAll || known.contains(where: { slots[$0]?.isOverlooked == true }) { wakes.continuation.yield() }
    }

    private func look(at known: [VaultSlot]) async {
        let idle = known.filter { slots[$0]?.isLookedAt(at: now()) == true }
        for start in stride(from: 0, to: idle.count, by: SharedVault.batch) {
            let part = Array(idle[start..<min(start + SharedVault.batch, idle.count)])
            let keys = part.compactMap { slots[$0]?.key }
            guard let rows = try? await read(keys) else {
                overlook(Array(idle[start...]))
                break
            }
            for slot in part {
                // A slot that is waited for, perhaps for seconds, delays no other one.
                if turns.isTaken(slot) { lookLater(at: slot, rows) } else { await look(at: slot, rows) }
            }
        }
        overlook(known.filter { slots[$0]?.isLookedAt(at: now()) == false })
    }

    private func lookLater(at slot: VaultSlot, _ rows: [RowKey: SharedRow]) {
        Task {
            await look(at: slot, rows)
            wakes.continuation.yield()
        }
    }

    /// They are looked at later.
    private func overlook(_ known: [VaultSlot]) { for slot in known { slots[slot]?.isOverlooked = true } }

    private func look(at slot: VaultSlot, _ rows: [RowKey: SharedRow]) async {
        do throws(VaultError) {
            let isChanged = try await inTurn(slot) { vault throws(VaultError) -> Bool in
                guard let state = vault.slots[slot], state.isLookedAt(at: vault.now()) else {
                    vault.overlook([slot])
                    return false
                }
                let isChanged = try await vault.compare(rows[state.key], with: slot)
                return isChanged || vault.slots[slot]?.base != vault.slots[slot]?.entry?.content.name
            }
            guard isChanged else { return }
            noteRemovals(in: slot)
            othersChanges.continuation.yield(slot)
        } catch {
            // What the row has cannot be used, until it is written again.
            if error != .unreachable(.olderRow), error != .unreachable(.foreignRow) { overlook([slot]) }
        }
    }

    /// Sends what the database does not have, and copies what the local vault does not have. Returns how long to wait before
    /// the next attempt; nil if nothing is left.
    public func tend() async -> Duration? {
        guard membership != nil else { return nil }
        for (id, key) in settling { await settle(id, of: key, wakes: false) }
        for slot in slots.unsent where (slots[slot]?.heldUntil ?? .zero) <= now() {
            _ = try? await inTurn(slot) { vault throws(VaultError) in try await vault.sendAndTell(slot) }
        }
        let overlooked = slots.overlooked.filter { slots[$0]?.isBusy(at: self.now()) == false }
        for slot in overlooked { slots[slot]?.isOverlooked = false }
        await look(at: Array(overlooked))
        // Nothing else may be asked for hours, and the status would say that the database is away.
        if outage.reason != nil, settling.isEmpty, slots.unsent.isEmpty { _ = try? await read([Membership.markRow]) }
        // A copy ends an announcement. So it is not made while a request may be under way, nor one that began meanwhile.
        let idle = slots.uncopied.lazy.filter { self.slots[$0]?.isBusy(at: self.now()) == false }
        for slot in idle.prefix(SharedVault.copies) {
            await inTurn(slot) { vault in
                if vault.slots[slot]?.isBusy(at: vault.now()) == false { await vault.copy(slot) }
            }
        }
        return slots.pause(isSettling: !settling.isEmpty, outage: outage, at: now())
    }
}
