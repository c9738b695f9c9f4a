internal import Secrets
internal import SessionVault

/// What the database has, against what this host has.
extension SharedVault {
    /// Takes up a row that is newer than what this host has. What only this host has is kept: it goes into the row, as its
    /// head or as a candidate. Returns whether the slot's content has changed here.
    ///
    /// To be called in a turn of the slot.
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
        return try await ask { rows throws(RowError) in try await rows.restore(sealed, in: key, version: version) }
    }

    /// Another host has found that the session has ended, and did not know of what this host received. That is presented
    /// next.
    private func put(_ entry: SpoolEntry, over row: SharedRow, in slot: VaultSlot) async throws(VaultError) {
        let sealed = try opened().seal(entry.content, as: row.key, version: row.version + 1)
        let lease = row.lease.flatMap { $0.host == host ? $0.id : nil }
        let putting = try await ask { rows throws(RowError) in
            try await rows.put(sealed, in: row.key, version: row.version, lease: lease, overrides: false)
        }
        guard case .put(let row) = putting else { throw .unreachable(.changedElsewhere) }
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
        let sealed = try opened().seal(entry.content, as: key, version: parent + 1)
        // The content's own name makes it one candidate, however often it is appended.
        let id = LeaseID(bytes: entry.content.name)
        _ = try await ask { rows throws(RowError) in
            try await rows.append(
                sealed, to: key, attempt: id, epoch: 0, step: 1, parentVersion: parent, newVersion: parent + 1,
                isFinal: true)
        }
    }

    private func takeUp(_ head: RowContent, _ row: SharedRow, in slot: VaultSlot) async -> Bool {
        let former = slots[slot]?.entry?.content.text
        // A response that came before this host heard of another's sign-out. What was put beside a row has no epoch.
        if head.text == nil, let entry = slots[slot]?.entry, !head.comes(from: entry.content),
            case .attempt(_, let epoch, _, _) = entry.origin, epoch > 0
        {
            await keep([entry.content], retiredFrom: slot)
        }
        let entry = SpoolEntry(content: head, version: row.version, origin: .row, isSent: true)
        slots[slot]?.entry = entry
        slots[slot]?.isUnwritten = false
        // A write takes milliseconds, and thousands of rows may have changed: `tend` makes the copy. A sign-out is removed
        // here at once.
        slots[slot]?.isUncopied = head.text != nil
        if head.text == nil { try? await local.remove(slot) } else { wakes.continuation.yield() }
        return former != head.text
    }

    /// Writes the entry to the local vault, once. If that fails, the database has it.
    ///
    /// To be called in a turn of the slot.
    func copy(_ slot: VaultSlot) async {
        guard let state = slots[slot], state.isUncopied, let entry = state.entry else { return }
        slots[slot]?.isUncopied = false
        try? await local.store(entry.encoded(), in: slot)
    }
}
