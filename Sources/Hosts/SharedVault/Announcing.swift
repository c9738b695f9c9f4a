internal import Cryptography
public import RingbackBase
public import SessionVault

extension SharedVault {
    /// How long another host's lease is waited for before the row is looked at again.
    private static let leaseWait: Duration = .seconds(5)
    private static let mostTurns = 5

    public func announce(_ slot: VaultSlot) async throws(VaultError) {
        switch try await announce(slot, presenting: nil, accessTokenLeft: nil) {
        case .granted: return
        case .changed, .wait: throw .unreachable(.heldElsewhere)
        }
    }

    public func announce(
        _ slot: VaultSlot, presenting token: Secret?, accessTokenLeft: Duration?
    ) async throws(VaultError) -> Announcement {
        guard isShared(slot) else {
            try await local.announce(slot)
            return .granted(.unshared)
        }
        return try await inTurn(slot) { vault throws(VaultError) in
            if let reason = vault.outage.refusal(at: vault.now()) { throw .unreachable(.databaseAway(reason)) }
            // Now, since a store in the local vault ends its announcement.
            await vault.copy(slot)
            try await vault.local.announce(slot)
            do throws(VaultError) {
                let announcement = try await vault.take(slot, presenting: token, accessTokenLeft)
                if case .granted = announcement { return announcement }
                try? await vault.local.settle(slot)
                return announcement
            } catch {
                // Nothing is sent.
                try? await vault.local.settle(slot)
                throw error
            }
        }
    }

    private func take(
        _ slot: VaultSlot, presenting token: Secret?, _ accessTokenLeft: Duration?
    ) async throws(VaultError) -> Announcement {
        try await endAttempt(of: slot)
        // What another host has stored was taken up here, and the broker does not have it yet: the token that it would
        // present is used up, or it would refresh what was just refreshed.
        if let state = slots[slot], token != nil, state.base != state.entry?.content.name { return changed(slot) }
        for _ in 0..<SharedVault.mostTurns {
            if try await send(slot) { return changed(slot) }
            let state = try await state(of: slot)
            if state.rowVersion == 0 {
                let row = try await read([state.key])[state.key]
                if try await compare(row, with: slot) { return changed(slot) }
                // The first content of a row is put there without a lease.
                if row == nil, slots[slot]?.entry?.isSent != false { return .granted(.unleased) }
                continue
            }
            let id = LeaseID(bytes: random(16))
            let begin = now()
            switch try await take(state, id, presenting: token) {
            case .done(let row):
                do throws(VaultError) {
                    let announcement =
                        if try await compare(row, with: slot) {
                            changed(slot)
                        } else if token != nil, let left = wait(for: row, id, slot, accessTokenLeft) {
                            Announcement.wait(left)
                        } else {
                            try granted(row, to: slot, id, begin)
                        }
                    if case .granted = announcement { return announcement }
                    await settle(id, of: state.key)
                    return announcement
                } catch {
                    await settle(id, of: state.key)
                    throw error
                }
            case .refused(let row):
                if try await compare(row, with: slot) { return changed(slot) }
                if let left = row?.lease?.left, left > .zero { return .wait(min(left, SharedVault.leaseWait)) }
            }
        }
        throw .unreachable(.heldElsewhere)
    }

    private func take(
        _ state: SlotState, _ id: LeaseID, presenting token: Secret?
    ) async throws(VaultError) -> RowOutcome {
        let intent = token.map { Digest.sha256($0) } ?? []
        do throws(VaultError) {
            return try await ask { rows throws(DatabaseReason) in
                try await rows.take(
                    state.key, version: state.rowVersion, id: id, intent: intent, lasting: SharedVault.lease)
            }
        } catch {
            // It may have been taken. Nothing is sent, so that nobody need wait for this attempt.
            settling.append((id, state.key))
            wakes.continuation.yield()
            throw error
        }
    }

    /// How long another host's attempt is to be waited for. A sign-in, which does not present the row's token, need not.
    private func wait(
        for row: SharedRow, _ id: LeaseID, _ slot: VaultSlot, _ accessTokenLeft: Duration?
    ) -> Duration? {
        row.wait(for: id, of: host, edits: slots[slot]?.edits ?? 0, accessTokenLeft: accessTokenLeft)
    }

    private func granted(
        _ row: SharedRow, to slot: VaultSlot, _ id: LeaseID, _ begin: Duration
    ) throws(VaultError) -> Announcement {
        guard var state = slots[slot] else { throw .locked(.locked) }
        let (newer, older) = try row.candidates(besides: state.entry, opened: opened())
        state.attempt = SlotState.Attempt(id: id, epoch: row.epoch, end: begin + SharedVault.lease)
        state.offered = Set((newer + older).map(\.name))
        state.newer = newer.map(\.name)
        slots[slot] = state
        return .granted(.lease(id.bytes), newer: newer.compactMap(\.text), older: older.compactMap(\.text))
    }

    public func requestBound(_ slot: VaultSlot, under lease: RefreshLease) async throws(VaultError) -> Duration? {
        guard case .lease(let id) = lease else { return nil }
        guard let attempt = slots[slot]?.attempt, attempt.id.bytes == id else { throw .unreachable(.leaseOver) }
        guard attempt.end - now() >= SharedVault.leastLeft else {
            // Whoever asks for a further request has had the response to the one before it.
            slots[slot]?.attempt?.mayBeSent = false
            try? await inTurn(slot) { vault throws(VaultError) in try await vault.endAttempt(of: slot) }
            throw .unreachable(.leaseOver)
        }
        slots[slot]?.attempt?.mayBeSent = true
        return SharedVault.longestRequest
    }

    public func proofOfEnd(_ slot: VaultSlot) async -> EndProof? {
        guard isShared(slot), let state = slots[slot] else { return EndProof() }
        guard let found = try? await read([state.key]), let sealing else { return nil }
        return state.proofOfEnd(found[state.key], of: host, opened: sealing)
    }

    public func settle(_ slot: VaultSlot) async throws(VaultError) {
        try await local.settle(slot)
        guard isShared(slot), slots[slot]?.attempt != nil else { return }
        slots[slot]?.attempt?.mayBeSent = false
        // If a response is here alone, the attempt stays, so that others wait for it.
        try? await inTurn(slot) { vault throws(VaultError) in try await vault.endAttempt(of: slot) }
    }

    /// Ends an attempt in which nothing was received.
    func settle(_ id: LeaseID, of key: RowKey, wakes wakesMaintenance: Bool = true) async {
        if !settling.contains(where: { $0.id == id }) { settling.append((id, key)) }
        let isDone =
            (try? await ask { rows throws(DatabaseReason) in try await rows.release(key, attempt: id, ends: true) })
            != nil
        if isDone { settling.removeAll { $0.id == id } } else if wakesMaintenance { wakes.continuation.yield() }
    }

    /// Ends the lease of an attempt, in a turn of the slot. What was received and is not sent yet is sent before.
    private func endAttempt(of slot: VaultSlot) async throws(VaultError) {
        if slots[slot]?.attempt != nil, slots[slot]?.entry?.isSent == false { try await sendAndTell(slot) }
        guard let attempt = slots[slot]?.attempt, let key = slots[slot]?.key else { return }
        slots[slot]?.attempt = nil
        if slots[slot].map({ $0.isOverlooked || $0.isUncopied }) == true { wakes.continuation.yield() }
        if !attempt.mayBeSent { return await settle(attempt.id, of: key) }
        try await ask { rows throws(DatabaseReason) in try await rows.release(key, attempt: attempt.id, ends: false) }
    }

    /// The broker gets the slot's content, which is another host's.
    private func changed(_ slot: VaultSlot) -> Announcement {
        let entry = slots[slot]?.entry
        slots[slot]?.base = entry?.content.name
        return .changed(self.entry(of: entry?.content))
    }
}
