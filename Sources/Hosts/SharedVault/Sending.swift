internal import Secrets
internal import SessionVault

/// What the database does not have yet is given to it.
extension SharedVault {
    /// How often a row may change while something is sent.
    private static let mostTries = 5

    /// Appends the slot's content, which was received in an attempt, to the row.
    func append(_ slot: VaultSlot, as version: Int64, after parent: Int64) async throws(VaultError) {
        guard let state = slots[slot], let entry = state.entry,
            case .attempt(let id, let epoch, let step, let isFinal) = entry.origin
        else { return }
        let sealed = try opened().seal(entry.content, as: state.key, version: version)
        let row = try await ask { rows throws(RowError) in
            try await rows.append(
                sealed, to: state.key, attempt: id, epoch: epoch, step: step, parentVersion: parent,
                newVersion: version, isFinal: isFinal)
        }
        try await sent(slot, row)
    }

    /// The database has the slot's content now: as the row's head, or as a candidate.
    private func sent(_ slot: VaultSlot, _ row: SharedRow) async throws(VaultError) {
        // The local vault says that it is to be sent, until it is written again.
        if case .put = slots[slot]?.entry?.origin, slots[slot]?.entry?.content.text != nil {
            slots[slot]?.isUncopied = true
            wakes.continuation.yield()
        }
        slots[slot]?.entry?.isSent = true
        show()
        if try await compare(row, with: slot) { othersChanges.continuation.yield(slot) }
        // A removed slot needs no record here once the row has it.
        if let entry = slots[slot]?.entry, entry.isHead, entry.content.text == nil { try? await local.remove(slot) }
    }

    /// Sends what is not sent, and tells the broker if another host's content is in the slot afterwards.
    @discardableResult
    func sendAndTell(_ slot: VaultSlot) async throws(VaultError) -> Bool {
        let isChanged = try await send(slot)
        if isChanged { othersChanges.continuation.yield(slot) }
        return isChanged
    }

    /// Sends the slot's content if the database does not have it. Returns whether another host's content is in the slot
    /// afterwards.
    ///
    /// To be called in a turn of the slot.
    func send(_ slot: VaultSlot) async throws(VaultError) -> Bool {
        guard let name = try await state(of: slot).entry?.content.name else { return false }
        for _ in 0..<SharedVault.mostTries {
            guard let state = slots[slot], let entry = state.entry, !entry.isSent else {
                return slots[slot]?.entry?.content.name != name
            }
            let row = try await read([state.key])[state.key]
            guard let row else {
                try await begin(slot, entry, state)
                continue
            }
            let sealing = try opened()
            let head = try sealing.open(row.sealed, as: row.key, version: row.version)
            if head.map({ entry.isKnown(before: $0) }) == true || row.has(entry.content, opened: sealing) {
                try await sent(slot, row)
                continue
            }
            let isNext = head.map { entry.content.comes(from: $0) } ?? false
            switch entry.origin {
            case .row, .attempt:
                let parent = isNext ? row.version : max(entry.version - 1, 0)
                try await append(slot, as: parent + 1, after: parent)
            case .put(let overrides):
                if isNext || overrides {
                    try await put(slot, over: row, overrides: overrides)
                } else {
                    // Another host has changed the row. What this host has is kept beside that.
                    slots[slot]?.entry?.origin = .attempt(
                        LeaseID(bytes: entry.content.name), epoch: 0, step: 1, isFinal: true)
                }
            }
        }
        if slots[slot]?.entry?.isSent == false { throw .unreachable(.heldElsewhere) }
        return slots[slot]?.entry?.content.name != name
    }

    /// Keeps what another host received before it heard of this one's sign-out, or this one before it heard of another's.
    func keep(_ contents: [RowContent], retiredFrom slot: VaultSlot) async {
        for content in contents where slot.kind == .session && slots[slot]?.kept.contains(content.name) == false {
            guard let text = content.text, (try? await local.keep(text, retiredFrom: slot)) != nil else { continue }
            slots[slot]?.kept.insert(content.name)
            hasKeptMore = true
        }
        if hasKeptMore { othersChanges.continuation.yield(slot) }
    }

    /// Makes the row.
    private func begin(_ slot: VaultSlot, _ entry: SpoolEntry, _ state: SlotState) async throws(VaultError) {
        guard entry.content.text != nil else {
            // There is nothing to remove.
            slots[slot]?.entry = nil
            slots[slot]?.base = nil
            show()
            return try await local.remove(slot)
        }
        if case .put = entry.origin {
            let sealed = try opened().seal(entry.content, as: state.key, version: 1)
            let putting = try await ask { rows throws(RowError) in
                try await rows.put(sealed, in: state.key, version: 0, lease: nil, overrides: false)
            }
            if case .put(let row) = putting { try await sent(slot, row) }
            return
        }
        try await sent(slot, try await put(back: entry, as: max(entry.version, 1), in: state.key))
    }

    private func put(_ slot: VaultSlot, over row: SharedRow, overrides: Bool) async throws(VaultError) {
        guard let state = slots[slot], let entry = state.entry else { return }
        let sealing = try opened()
        if let former = state.signedOut { await keep(row.received(after: former, opened: sealing), retiredFrom: slot) }
        let sealed = try sealing.seal(entry.content, as: state.key, version: row.version + 1)
        let putting = try await ask { rows throws(RowError) in
            try await rows.put(
                sealed, in: state.key, version: row.version, lease: state.attempt?.id, overrides: overrides)
        }
        switch putting {
        case .put(let row):
            // Nobody else's attempts are left, and no own one either.
            if overrides { slots[slot]?.attempt = nil }
            slots[slot]?.signedOut = nil
            try await sent(slot, row)
        case .refused(let row):
            if !overrides, row?.lease != nil { throw .unreachable(.heldElsewhere) }
        }
    }
}
