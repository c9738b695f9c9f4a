internal import RingbackBase
public import SessionVault

extension SharedVault {
    public func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        try await load([slot])[0].get()
    }

    /// Reads the local vault and the rows. If the database is away, what the local vault has is used.
    public func load(_ slots: [VaultSlot]) async -> [Result<VaultEntry?, VaultError>] {
        // Whether a session is stale is known only with the record of removed hosts.
        if self.slots[removalSlot] == nil, slots != [removalSlot] { _ = await load([removalSlot]) }
        var found = await local.load(slots)
        let former = looks
        let rows = await read(slots.filter(isShared))
        for (index, slot) in slots.enumerated() where isShared(slot) {
            do throws(VaultError) {
                found[index] = .success(try await load(slot, found[index], rows, since: former))
            } catch {
                found[index] = .failure(error)
            }
        }
        return found
    }

    private func read(_ slots: [VaultSlot]) async -> [RowKey: SharedRow]? {
        let keys = slots.compactMap { try? sealing?.key(of: $0) }
        guard !keys.isEmpty else { return [:] }
        // A start loads thousands, some at a time. It does not wait for the database each time.
        guard !outage.delaysLoading(at: now()) else { return nil }
        let rows = try? await read(keys)
        if rows == nil, outage.reason != nil { outage.noteLoading(at: now()) }
        return rows
    }

    /// - Parameter former: ``looks`` when the rows were about to be read.
    private func load(
        _ slot: VaultSlot, _ found: Result<VaultEntry?, VaultError>, _ rows: [RowKey: SharedRow]?, since former: Int
    ) async throws(VaultError) -> VaultEntry? {
        try await inTurn(slot) { vault throws(VaultError) in
            if case .failure(let error) = found {
                // The row has what the local vault cannot read.
                guard case .damaged = error, let rows, rows[try vault.opened().key(of: slot)] != nil else {
                    throw error
                }
            }
            let stored = try? found.get()
            let isKnown = vault.slots[slot] != nil
            let state = try vault.note(stored?.text, in: slot)
            let name = state.entry?.content.name
            // A change that was told during the read may be newer than the row, and the slot was not known then.
            if rows == nil || !isKnown && vault.looks != former {
                vault.slots[slot]?.isOverlooked = true
                vault.wakes.continuation.yield()
            }
            if let rows {
                do throws(VaultError) {
                    if try await !vault.send(slot) { try await vault.compare(rows[state.key], with: slot) }
                } catch {
                    // The row cannot be used now. What this host has is good as long as its tokens are.
                    if vault.slots[slot]?.entry == nil { throw error }
                }
            }
            let entry = vault.slots[slot]?.entry
            vault.slots[slot]?.base = entry?.content.name
            vault.noteRemovals(in: slot)
            // The mark is that of the content in the local vault.
            let marked = stored.map { SpoolEntry.read($0.text)?.content.name ?? name }
            return vault.entry(
                of: entry?.content, isInterrupted: stored?.isInterrupted == true && marked == entry?.content.name)
        }
    }

    /// Sessions are loaded when the vault is open. A client registration is used when a user signs in, perhaps never here.
    func listUnread() async {
        unread = Set((try? await local.slots(of: .registration, besides: [])) ?? [])
        unloaded = Set((try? await local.slots(of: .session, besides: Set(slots.all))) ?? [])
        show()
        if !unread.isEmpty { wakes.continuation.yield() }
    }

    /// For the broker; nil if the slot is empty.
    func entry(of content: RowContent?, isInterrupted: Bool = false) -> VaultEntry? {
        guard let content, let text = content.text else { return nil }
        return VaultEntry(text: text, isInterrupted: isInterrupted, shift: content.shift(to: rows.facts.clock))
    }

    public func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        var found: [VaultSlot] = []
        for slot in try await local.slots(of: kind, besides: known) {
            // A slot that was emptied here while the database is away has a record that says so.
            if try await state(of: slot).entry?.content.text != nil { found.append(slot) }
        }
        return found
    }

    /// Takes up a row that is newer than what this host has. What only this host has goes into the row, as its head or
    /// as a candidate. Returns whether the slot's content has changed here. To be called in a turn of the slot.
    @discardableResult
    func compare(_ row: SharedRow?, with slot: VaultSlot) async throws(VaultError) -> Bool {
        let state = try await state(of: slot)
        guard var row else {
            slots[slot]?.rowVersion = 0
            guard let entry = state.entry, entry.content.text != nil else { return false }
            if entry.isHead { return try await restore(entry, to: slot) }
            slots[slot]?.entry?.isSent = false
            return false
        }
        let seen = max(state.rowVersion, state.entry.map { $0.isHead ? $0.version : 0 } ?? 0)
        if row.version < seen {
            guard let entry = state.entry, entry.version >= seen else { return try refuse(slot, .older) }
            row = try await put(back: entry, as: entry.version, in: state.key)
        }
        guard let head = try opened().open(row.sealed, as: row.key, version: row.version), row.key == state.key else {
            return try refuse(slot, .unreadable)
        }
        // Not the whole state: a request may begin or end while this waits.
        slots[slot]?.refusal = nil
        slots[slot]?.rowVersion = row.version
        guard let entry = state.entry else { return await takeUp(head, row, in: slot) }
        if entry.content.name == head.name {
            slots[slot]?.entry?.confirm(row.version)
            return false
        }
        // What this host has came after the head: it is a candidate, or is to be sent.
        if entry.content.comes(from: head) { return false }
        if !entry.isHead, entry.content.outlives(head) {
            try await put(entry, over: row, in: slot)
            return false
        }
        if !head.comes(from: entry.content), entry.version + Int64(RowContent.mostAncestors) > row.version {
            try await keep(entry, of: slot)
        }
        return await takeUp(head, row, in: slot)
    }

    private func refuse(_ slot: VaultSlot, _ refusal: Refusal) throws(VaultError) -> Bool {
        slots[slot]?.refusal = refusal
        throw .unreachable(refusal == .older ? .olderRow : .foreignRow)
    }

    /// The row has nothing of what this host has: it is put back.
    private func restore(_ entry: SpoolEntry, to slot: VaultSlot) async throws(VaultError) -> Bool {
        guard let key = slots[slot]?.key else { return false }
        let row = try await put(back: entry, as: max(entry.version, 1), in: key)
        return try await compare(row, with: slot)
    }

    func put(back entry: SpoolEntry, as version: Int64, in key: RowKey) async throws(VaultError) -> SharedRow {
        let sealed = try opened().seal(entry.content, as: key, version: version)
        return try await ask { rows throws(DatabaseReason) in try await rows.restore(sealed, in: key, version: version)
        }
    }

    /// Another host has found that the session has ended, and did not know what this host received.
    private func put(_ entry: SpoolEntry, over row: SharedRow, in slot: VaultSlot) async throws(VaultError) {
        let sealed = try opened().seal(entry.content, as: row.key, version: row.version + 1)
        let lease = row.lease.flatMap { $0.host == host ? $0.id : nil }
        let putting = try await ask { rows throws(DatabaseReason) in
            try await rows.put(sealed, in: row.key, version: row.version, lease: lease, overrides: false)
        }
        guard case .done(let row) = putting else { throw .unreachable(.changedElsewhere) }
        slots[slot]?.rowVersion = row.version
        slots[slot]?.entry?.confirm(row.version)
        // The local vault says that it is to be sent.
        slots[slot]?.isUncopied = true
        wakes.continuation.yield()
    }

    /// Keeps in the row, as a candidate, what is to be replaced here by a head that did not come from it.
    private func keep(_ entry: SpoolEntry, of slot: VaultSlot) async throws(VaultError) {
        guard let key = slots[slot]?.key, entry.content.text != nil, !entry.content.isEnd else { return }
        let parent = max(entry.version - 1, 0)
        // The content's own name makes it one candidate, however often it is appended.
        let received = SharedRow.Candidate(
            attempt: LeaseID(bytes: entry.content.name), step: 1, parentVersion: parent, epoch: 0,
            sealed: try opened().seal(entry.content, as: key, version: parent + 1))
        _ = try await ask { rows throws(DatabaseReason) in try await rows.append(received, to: key, isFinal: true) }
    }

    private func takeUp(_ head: RowContent, _ row: SharedRow, in slot: VaultSlot) async -> Bool {
        let former = slots[slot]?.entry?.content.text
        // The response came before this host read the other host's sign-out. Other content has no epoch.
        if head.text == nil, let entry = slots[slot]?.entry, !head.comes(from: entry.content),
            case .attempt(_, let epoch, _, _) = entry.origin, epoch > 0
        {
            await keep([entry.content], retiredFrom: slot)
        }
        let entry = SpoolEntry(content: head, version: row.version, origin: .row, isSent: true)
        slots[slot]?.entry = entry
        slots[slot]?.isUnwritten = false
        // A write takes milliseconds, and thousands of rows may have changed: `maintain` copies. A sign-out is removed.
        slots[slot]?.isUncopied = head.text != nil
        if head.text == nil { try? await local.remove(slot) } else { wakes.continuation.yield() }
        return former != head.text
    }

    /// Writes the entry to the local vault, once, in a turn of the slot. If that fails, the database has it.
    func copy(_ slot: VaultSlot) async {
        guard let state = slots[slot], state.isUncopied, let entry = state.entry else { return }
        slots[slot]?.isUncopied = false
        try? await local.store(entry.encoded(), in: slot)
    }

    /// Follows the rows' changes until it is cancelled.
    public func follow() async {
        let news = RowNews()
        await withDiscardingTaskGroup { group in
            group.addTask { while let keys = await news.next() { await self.look(at: keys) } }
            group.addTask { await Maintenance(wakes: self.wakes).run { await self.maintain() } }
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
        looks += 1
        let known = isAll ? slots.all : keys.compactMap { $0.flatMap { names[$0] } }
        await RowQuery().look(at: known, by: self)
        if isAll || known.contains(where: { slots[$0]?.isOverlooked == true }) { wakes.continuation.yield() }
    }

    /// Sends what the database lacks, and copies what the local vault lacks. Returns the pause before the next attempt.
    public func maintain() async -> Duration? { await MaintenancePass().run(by: self) }
}

struct RowQuery: Sendable {
    private static let batch = 128

    func look(at known: [VaultSlot], by vault: isolated SharedVault) async {
        let idle = known.filter { vault.slots[$0]?.isLookedAt(at: vault.now()) == true }
        for start in stride(from: 0, to: idle.count, by: RowQuery.batch) {
            let part = Array(idle[start..<min(start + RowQuery.batch, idle.count)])
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

struct MaintenancePass: Sendable {
    private static let copies = 128

    func run(by vault: isolated SharedVault) async -> Duration? {
        guard vault.membership != nil else { return nil }
        await readUnread(by: vault)
        for (id, key) in vault.settling { await vault.settle(id, of: key, wakes: false) }
        for slot in vault.slots.unsent where (vault.slots[slot]?.heldUntil ?? .zero) <= vault.now() {
            _ = try? await vault.inTurn(slot) { vault throws(VaultError) in try await vault.sendAndTell(slot) }
        }
        let overlooked = vault.slots.overlooked.filter { vault.slots[$0]?.isBusy(at: vault.now()) == false }
        for slot in overlooked { vault.slots[slot]?.isOverlooked = false }
        await RowQuery().look(at: Array(overlooked), by: vault)
        // Nothing else may be asked for hours, and the status would say that the database is away.
        if vault.outage.reason != nil, vault.settling.isEmpty, vault.slots.unsent.isEmpty {
            _ = try? await vault.read([Membership.markRow])
        }
        // A copy ends an announcement. So it is not made while a request may be under way, nor one that began meanwhile.
        let idle = vault.slots.uncopied.lazy.filter { vault.slots[$0]?.isBusy(at: vault.now()) == false }
        for slot in idle.prefix(MaintenancePass.copies) {
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
