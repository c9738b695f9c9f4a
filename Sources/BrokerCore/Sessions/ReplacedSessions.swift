/// Sessions of one slot that others took the place of while the vault could not be written.
///
/// Until the vault holds a newer session, a restart would bring back the one in it. So none of them is ended at the
/// provider before.
struct ReplacedSessions: Sendable {
    /// The session whose record the vault held before; nil if that is the session that the lane holds, or none.
    private var stored: Closed?
    /// False once a write has failed. It may have taken effect all the same, so that it is not known whose record the
    /// vault holds.
    private var isInVault = true
    /// The vault never held these.
    private var others: [Closed] = []

    /// True if the record in the vault is of a session that has to be ended, not only overwritten.
    var holdsStored: Bool { stored != nil }
    /// True if the vault is to keep the record that is there. Only the first write asks for that: a second one could
    /// put the record of the session in use among those to be ended.
    var isToBeKept: Bool { stored != nil && isInVault }

    /// A write has failed.
    mutating func writeFailed() { isInVault = false }

    var isEmpty: Bool { stored == nil && others.isEmpty }

    mutating func add(_ closed: Closed) {
        if stored == nil { stored = closed } else { others.append(closed) }
    }

    /// A session that was replaced is held again, for example because another program handed it in. It is not ended.
    mutating func remove(where isHeldAgain: (Session) -> Bool) {
        if let stored, isHeldAgain(stored.session) { self.stored = nil }
        others.removeAll { isHeldAgain($0.session) }
    }

    /// What is to be ended, now that the vault holds none of them in its slot.
    ///
    /// - Parameter retirement: the vault's identifier of the stored one, which it keeps until the provider has been told.
    func ended(retirement: String?) -> [Closed] {
        guard var stored else { return others }
        stored.retirement = retirement
        return [stored] + others
    }
}
