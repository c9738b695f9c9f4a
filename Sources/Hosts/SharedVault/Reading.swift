public import SessionVault

/// What a slot holds.
extension SharedVault {
    public func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        try await load([slot])[0].get()
    }

    /// Reads the local vault and the rows. If the database is away, what the local vault has is used.
    public func load(_ slots: [VaultSlot]) async -> [Result<VaultEntry?, VaultError>] {
        // Whether a session is stale is known only with the record of removed hosts.
        if self.slots[removalSlot] == nil, slots != [removalSlot] { _ = await load([removalSlot]) }
        var found = await local.load(slots)
        let rows = await read(slots.filter(isShared))
        for (index, slot) in slots.enumerated() where isShared(slot) {
            do throws(VaultError) {
                found[index] = .success(try await load(slot, found[index], rows))
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

    private func load(
        _ slot: VaultSlot, _ found: Result<VaultEntry?, VaultError>, _ rows: [RowKey: SharedRow]?
    ) async throws(VaultError) -> VaultEntry? {
        try await inTurn(slot) { vault throws(VaultError) in
            if case .failure(let error) = found {
                // The row has what the local vault cannot read.
                guard case .damaged = error, let rows, rows[try vault.opened().key(of: slot)] != nil else {
                    throw error
                }
            }
            let stored = try? found.get()
            let state = try vault.note(stored?.text, in: slot)
            let name = state.entry?.content.name
            if rows == nil {
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
}
