public import RingbackBase
public import SessionVault

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
            try await vault.append(slot, after: state.rowVersion)
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
        do throws(VaultError) { try await send(self) } catch { wakes.continuation.yield() }
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
            let putting = try await ask { [key = state.key] rows throws(DatabaseReason) in
                try await rows.put(sealed, in: key, version: version, lease: lease, overrides: false)
            }
            switch putting {
            case .done(let row):
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

    private func content(
        _ text: Secret?, after state: SlotState, isEdited: Bool = false, begins: Bool = false, isEnd: Bool = false
    ) -> RowContent {
        RowContent(
            text, after: state.entry?.content, and: state.newer, name: random(RowContent.nameLength), begins: begins,
            isEdited: isEdited, isEnd: isEnd, removals: removals.count, clock: rows.facts.clock)
    }

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

    /// Stores a text, or nothing, and keeps the former one. It overrides other hosts: a user of this host asked for it.
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

    private static let mostTries = 5

    /// Appends the slot's content, which was received in an attempt, to the row.
    func append(_ slot: VaultSlot, after parent: Int64) async throws(VaultError) {
        guard let state = slots[slot], let entry = state.entry,
            case .attempt(let id, let epoch, let step, let isFinal) = entry.origin
        else { return }
        let received = SharedRow.Candidate(
            attempt: id, step: step, parentVersion: parent, epoch: epoch,
            sealed: try opened().seal(entry.content, as: state.key, version: parent + 1))
        let row = try await ask { rows throws(DatabaseReason) in
            try await rows.append(received, to: state.key, isFinal: isFinal)
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

    /// Sends the slot's content, in a turn of the slot. Returns whether another host's content is there afterwards.
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
                try await append(slot, after: isNext ? row.version : max(entry.version - 1, 0))
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
            let putting = try await ask { rows throws(DatabaseReason) in
                try await rows.put(sealed, in: state.key, version: 0, lease: nil, overrides: false)
            }
            if case .done(let row) = putting { try await sent(slot, row) }
            return
        }
        try await sent(slot, try await put(back: entry, as: max(entry.version, 1), in: state.key))
    }

    private func put(_ slot: VaultSlot, over row: SharedRow, overrides: Bool) async throws(VaultError) {
        guard let state = slots[slot], let entry = state.entry else { return }
        let sealing = try opened()
        if let former = state.signedOut { await keep(row.received(after: former, opened: sealing), retiredFrom: slot) }
        let sealed = try sealing.seal(entry.content, as: state.key, version: row.version + 1)
        let putting = try await ask { rows throws(DatabaseReason) in
            try await rows.put(
                sealed, in: state.key, version: row.version, lease: state.attempt?.id, overrides: overrides)
        }
        switch putting {
        case .done(let row):
            // Overriding has ended every attempt, this host's too.
            if overrides { slots[slot]?.attempt = nil }
            slots[slot]?.signedOut = nil
            try await sent(slot, row)
        case .refused(let row):
            if !overrides, row?.lease != nil { throw .unreachable(.heldElsewhere) }
        }
    }
}
