public import Secrets
public import SessionVault

/// Changes of a slot.
extension SharedVault {
    public func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        try await store(text, in: slot, as: slots[slot]?.attempt == nil ? .edit : .result)
    }

    public func store(_ text: Secret, in slot: VaultSlot, as write: VaultWrite) async throws(VaultError) {
        guard isShared(slot) else { return try await local.store(text, in: slot) }
        try await inTurn(slot) { vault throws(VaultError) in
            let state = try await vault.state(of: slot)
            switch write {
            case .replacement: try await vault.put(text, in: slot, overrides: true)
            case .received, .result, .end:
                if let attempt = state.attempt {
                    return try await vault.append(text, to: slot, attempt, write)
                }
                try vault.refuseStale(slot)
                try await vault.put(text, in: slot, overrides: false, isEnd: write == .end)
            case .edit:
                try vault.refuseStale(slot)
                try await vault.edit(text, in: slot)
            }
        }
    }

    /// What the broker writes was made from another content than the slot has now.
    private func refuseStale(_ slot: VaultSlot) throws(VaultError) {
        guard let state = slots[slot], state.base != state.entry?.content.name else { return }
        othersChanges.continuation.yield(slot)
        throw .unreachable(.changedElsewhere)
    }

    /// Stores a response: here first, then in the row.
    private func append(
        _ text: Secret, to slot: VaultSlot, _ attempt: SlotState.Attempt, _ write: VaultWrite
    ) async throws(VaultError) {
        guard var state = slots[slot] else { throw .locked(.locked) }
        let (step, isFinal) = (attempt.steps + 1, write != .received)
        state.entry = SpoolEntry(
            content: content(text, after: state, isEnd: write == .end), version: state.rowVersion + 1,
            origin: .attempt(attempt.id, epoch: attempt.epoch, step: step, isFinal: isFinal), isSent: false)
        state.attempt?.steps = step
        // The row is compared once it has the response.
        if isFinal { (state.attempt, state.isOverlooked) = (nil, false) }
        let held = isFinal ? nil : now() + SharedVault.validation
        try await keepHere(state, of: slot, heldUntil: held) { vault throws(VaultError) in
            let parent = state.rowVersion
            try await vault.append(slot, as: parent + 1, after: parent)
        }
    }

    /// Writes without a request. If the database is away it gets the content later.
    private func put(
        _ text: Secret?, in slot: VaultSlot, overrides: Bool, isEnd: Bool = false
    ) async throws(VaultError) {
        guard var state = slots[slot] else { throw .locked(.locked) }
        // The same again: the local vault had no room.
        if !overrides, let entry = state.entry, entry.content.text == text {
            try await local.store(entry.encoded(), in: slot)
            slots[slot]?.note(written: entry)
            return
        }
        state.entry = SpoolEntry(
            content: content(text, after: state, begins: overrides, isEnd: isEnd), version: state.rowVersion + 1,
            origin: .put(overrides: overrides), isSent: false)
        try await keepHere(state, of: slot) { vault throws(VaultError) in try await vault.sendAndTell(slot) }
    }

    /// Stores the slot's new content in the local vault, then gives it to the database. If one of the two fails, the
    /// other one has it; throws only if the local vault fails. What the database does not have is sent later, as is what
    /// the local vault has and is held back.
    private func keepHere(
        _ state: SlotState, of slot: VaultSlot, heldUntil: Duration? = nil,
        _ send: (isolated SharedVault) async throws(VaultError) -> Void
    ) async throws(VaultError) {
        var state = state
        state.base = state.entry?.content.name
        (state.heldUntil, state.isUncopied) = (heldUntil, false)
        slots[slot] = state
        var failure: VaultError?
        if let entry = state.entry {
            do throws(VaultError) { try await local.store(entry.encoded(), in: slot) } catch { failure = error }
        }
        slots[slot]?.isUnwritten = failure != nil
        if failure == nil, heldUntil != nil {
            wakes.continuation.yield()
            return
        }
        slots[slot]?.heldUntil = nil
        do throws(VaultError) {
            try await send(self)
        } catch {
            wakes.continuation.yield()
        }
        if let failure { throw failure }
    }

    /// Writes only if no other host has changed the row, and is not at it. Without the database nothing is written.
    private func edit(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        if try await sendAndTell(slot) { throw .unreachable(.changedElsewhere) }
        for _ in 0..<2 {
            guard let state = slots[slot] else { throw .locked(.locked) }
            let content = content(text, after: state, isEdited: true)
            let version = state.rowVersion
            let sealed = try opened().seal(content, as: state.key, version: version + 1)
            let lease = state.attempt?.id
            let putting = try await ask { [key = state.key] rows throws(RowError) in
                try await rows.put(sealed, in: key, version: version, lease: lease, overrides: false)
            }
            switch putting {
            case .put(let row):
                let entry = SpoolEntry(content: content, version: row.version, origin: .row, isSent: true)
                slots[slot]?.note(written: entry)
                slots[slot]?.rowVersion = row.version
                return try await local.store(entry.encoded(), in: slot)
            case .refused(let row):
                if try await compare(row, with: slot) {
                    othersChanges.continuation.yield(slot)
                    throw .unreachable(.changedElsewhere)
                }
                if row?.lease != nil { throw .unreachable(.heldElsewhere) }
            }
        }
        throw .unreachable(.changedElsewhere)
    }

    /// - Parameters:
    ///   - isEdited: the text has no tokens that the former one did not have.
    ///   - begins: a user has signed in, or out.
    ///   - isEnd: the text says that the provider has ended the session.
    private func content(
        _ text: Secret?, after state: SlotState, isEdited: Bool = false, begins: Bool = false, isEnd: Bool = false
    ) -> RowContent {
        RowContent(
            text, after: state.entry?.content, and: state.newer, name: random(RowContent.nameLength), begins: begins,
            isEdited: isEdited, isEnd: isEnd, removals: removals.count, clock: rows.facts.clock)
    }

    // MARK: Emptying

    public func remove(_ slot: VaultSlot) async throws(VaultError) {
        guard isShared(slot) else { return try await local.remove(slot) }
        try await inTurn(slot) { vault throws(VaultError) in
            guard try await vault.state(of: slot).entry?.content.text != nil else {
                return try await vault.local.remove(slot)
            }
            try await vault.put(nil, in: slot, overrides: true)
        }
    }

    public func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        guard isShared(slot) else { return try await local.retire(slot) }
        return try await exchange(nil, in: slot)
    }

    public func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        guard isShared(slot) else { return try await local.replace(text, in: slot) }
        return try await exchange(text, in: slot)
    }

    /// Stores a text, or nothing, and keeps the former one. What other hosts have written does not matter: a user of this
    /// host asked for it.
    private func exchange(_ text: Secret?, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        try await inTurn(slot) { vault throws(VaultError) in
            let state = try await vault.state(of: slot)
            let former = state.entry?.content.text
            if text == nil, former == nil { return nil }
            // The local vault keeps for revocation what it has.
            await vault.copy(slot)
            let entry = SpoolEntry(
                content: vault.content(text, after: state, begins: true), version: state.rowVersion + 1,
                origin: .put(overrides: true), isSent: false)
            let retired = try await vault.local.replace(entry.encoded(), in: slot)
            vault.slots[slot]?.note(written: entry)
            vault.slots[slot]?.heldUntil = nil
            vault.slots[slot]?.signedOut = text == nil ? state.entry?.content : nil
            do throws(VaultError) { try await vault.sendAndTell(slot) } catch { vault.wakes.continuation.yield() }
            guard let former else {
                // What was replaced here says that the slot was empty.
                if let retired { try? await vault.local.discard(retired.id) }
                return nil
            }
            // It has an older one, if the copy could not be written.
            guard let unwrapped = retired?.unwrapped, unwrapped.text == former else {
                return try await vault.local.keep(former, retiredFrom: slot)
            }
            return unwrapped
        }
    }

    public func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        try await local.keep(text, retiredFrom: slot)
    }

    public func retired() async throws(VaultError) -> [RetiredEntry] {
        try await local.retired().compactMap(\.unwrapped)
    }

    public func keptMore() async -> Bool {
        defer { hasKeptMore = false }
        return hasKeptMore
    }

    public func discard(_ id: String) async throws(VaultError) { try await local.discard(id) }
}
