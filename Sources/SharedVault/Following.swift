internal import SessionVault

/// What other hosts do is followed, and what the database does not have is sent when it is back.
extension SharedVault {
    /// How many rows are read at once.
    private static let batch = 128
    /// How long the database is left alone after an attempt to send something.
    private static let tendingPause: Duration = .seconds(1)

    /// Follows the rows' changes until it is cancelled.
    public func follow() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await key in self.rows.changes { await self.look(at: key) }
            }
            group.addTask {
                var wakes = self.wakes.stream.makeAsyncIterator()
                while !Task.isCancelled {
                    if let pause = await self.tend() {
                        try? await Task.sleep(for: pause)
                    } else if await wakes.next() == nil {
                        return
                    }
                }
            }
        }
    }

    /// A row may have changed; nil: any of them.
    public func look(at key: RowKey?) async {
        // Everything is looked at again when the connection is back.
        if key == nil { outage.tryNow() }
        guard membership != nil else { return askToOpen() }
        let known = key.map { names[$0].map { [$0] } ?? [] } ?? Array(slots.keys)
        // A request that is under way ends with the row as it is then.
        let idle = known.filter { slot in slots[slot]?.attempt.map { $0.end <= now() } ?? true }
        for start in stride(from: 0, to: idle.count, by: SharedVault.batch) {
            let part = idle[start..<min(start + SharedVault.batch, idle.count)]
            let keys = part.compactMap { slots[$0]?.key }
            guard let rows = try? await read(keys) else { return }
            for slot in part { await look(at: slot, rows) }
        }
        if key == nil { wakes.continuation.yield() }
    }

    private func look(at slot: VaultSlot, _ rows: [RowKey: SharedRow]) async {
        let isChanged = try? await inTurn(slot) { vault throws(VaultError) -> Bool in
            guard let state = vault.slots[slot], state.attempt.map({ $0.end <= vault.now() }) ?? true else {
                return false
            }
            if try await vault.send(slot) { return true }
            let isChanged = try await vault.compare(rows[state.key], with: slot)
            return isChanged || vault.slots[slot]?.base != vault.slots[slot]?.entry?.content.name
        }
        guard isChanged == true else { return }
        noteRemovals(in: slot)
        othersChanges.continuation.yield(slot)
    }

    /// The slots whose content the database does not have.
    var unsent: [VaultSlot] { slots.filter { $0.value.entry?.isSent == false }.map(\.key) }

    /// Sends what the database does not have. Returns how long to wait before the next attempt; nil if nothing is left.
    public func tend() async -> Duration? {
        for (id, key) in settling { await settle(id, of: key) }
        for slot in unsent where (slots[slot]?.heldUntil ?? .zero) <= now() {
            _ = try? await inTurn(slot) { vault throws(VaultError) in try await vault.sendAndTell(slot) }
        }
        // Nothing else may be asked for hours, and the status would say that the database is away.
        if outage.reason != nil, settling.isEmpty, unsent.isEmpty { _ = try? await read([Membership.markRow]) }
        let (left, now) = (unsent, now())
        guard !settling.isEmpty || !left.isEmpty || outage.reason != nil else { return nil }
        let held = left.compactMap { slots[$0]?.heldUntil }.filter { $0 > now }
        if settling.isEmpty, held.count == left.count, let first = held.min() { return first - now }
        return outage.reason == nil ? SharedVault.tendingPause : outage.pause(at: now)
    }
}
