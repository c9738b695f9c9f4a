internal import SessionVault

/// The slots that are known. Those for which there is something to do are found without looking at all.
struct SlotTable: Sendable {
    /// How long the database is left alone after an attempt to send something, if there is nothing else to do.
    private static let leastPause: Duration = .seconds(1)

    private var states: [VaultSlot: SlotState] = [:]
    /// Those whose content the database does not have.
    private(set) var unsent: Set<VaultSlot> = []
    /// Those whose content is to be copied to the local vault.
    private(set) var uncopied: Set<VaultSlot> = []
    /// Those with a change that was overlooked.
    private(set) var overlooked: Set<VaultSlot> = []

    var all: [VaultSlot] { Array(states.keys) }

    subscript(slot: VaultSlot) -> SlotState? {
        get { states[slot] }
        set {
            states[slot] = newValue
            SlotTable.mark(slot, newValue?.entry?.isSent == false, in: &unsent)
            SlotTable.mark(slot, newValue?.isUncopied == true, in: &uncopied)
            SlotTable.mark(slot, newValue?.isOverlooked == true, in: &overlooked)
        }
    }

    /// Forgets all but those that the local vault could not be given. What was not copied yet is in the database.
    mutating func forgetWritten() {
        for (slot, state) in states where !state.isUnwritten { self[slot] = nil }
    }

    /// How long to wait before something is done for them; nil if there is nothing to be done.
    ///
    /// - Parameters:
    ///   - isSettling: there are attempts whose end is to be told to the database.
    ///   - now: the time since boot.
    func pause(isSettling: Bool, outage: Outage, at now: Duration) -> Duration? {
        if uncopied.contains(where: { self[$0]?.isBusy(at: now) == false }) { return .zero }
        guard isSettling || !unsent.isEmpty || outage.reason != nil else {
            let copied = uncopied.compactMap { self[$0]?.attempt?.end }
            let end = (overlooked.compactMap { self[$0]?.overlookedUntil } + copied).min()
            return end.map { max($0 - now, SlotTable.leastPause) }
        }
        let held = unsent.compactMap { self[$0]?.heldUntil }.filter { $0 > now }
        if !isSettling, held.count == unsent.count, let first = held.min() { return first - now }
        return outage.reason == nil ? SlotTable.leastPause : outage.pause(at: now)
    }

    private static func mark(_ slot: VaultSlot, _ isMarked: Bool, in set: inout Set<VaultSlot>) {
        if isMarked { set.insert(slot) } else { set.remove(slot) }
    }
}
