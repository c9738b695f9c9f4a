internal import SessionVault

/// Who is next at each slot. For the vault's actor alone.
final class SlotTurns {
    private var waiting: [VaultSlot: [CheckedContinuation<Void, Never>]] = [:]

    /// Returns when all that was begun before at the slot is over.
    func begin(_ slot: VaultSlot, isolation: isolated (any Actor)? = #isolation) async {
        guard waiting[slot] != nil else {
            waiting[slot] = []
            return
        }
        await withCheckedContinuation { waiting[slot]?.append($0) }
    }

    func isTaken(_ slot: VaultSlot) -> Bool { waiting[slot] != nil }

    func end(_ slot: VaultSlot) {
        if let next = waiting[slot]?.first {
            waiting[slot]?.removeFirst()
            next.resume()
        } else {
            waiting[slot] = nil
        }
    }
}
