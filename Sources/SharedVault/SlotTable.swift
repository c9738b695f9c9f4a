internal import SessionVault

/// The slots that are known. Those for which there is something to do are found without looking at all.
struct SlotTable: Sendable {
    private var states: [VaultSlot: SlotState] = [:]
    /// Those whose content the database does not have.
    private(set) var unsent: Set<VaultSlot> = []
    /// Those with a change that was overlooked.
    private(set) var overlooked: Set<VaultSlot> = []

    var all: [VaultSlot] { Array(states.keys) }

    subscript(slot: VaultSlot) -> SlotState? {
        get { states[slot] }
        set {
            states[slot] = newValue
            SlotTable.mark(slot, newValue?.entry?.isSent == false, in: &unsent)
            SlotTable.mark(slot, newValue?.isOverlooked == true, in: &overlooked)
        }
    }

    /// Forgets all but those that the local vault does not have.
    mutating func forgetWritten() {
        for (slot, state) in states where !state.isUnwritten { self[slot] = nil }
    }

    private static func mark(_ slot: VaultSlot, _ isMarked: Bool, in set: inout Set<VaultSlot>) {
        if isMarked { set.insert(slot) } else { set.remove(slot) }
    }
}
