internal import SessionVault

/// What belongs to no lane any more: sessions of accounts that are locked, removed or bound otherwise now. Nobody is
/// served from here. A session is taken up again when its account is back, or its provider is told of its end.
struct Residue: Sendable {
    private enum Remainder: Sendable {
        /// The vault could not be made to take it. It is written again until it is kept.
        case unwritten(Session)
        /// Nothing of it is to be on the disk. It ends with the daemon, or by a lock.
        case memoryOnly(Closed)
    }

    private var remainders: [VaultSlot: Remainder] = [:]
    /// Sessions that are over here, and whose providers have yet to hear of it. The vault holds nothing of them.
    private var ended: [Closed] = []
    /// Back-off of lanes that are gone: a reload must not jump over a provider's `Retry-After`.
    private var backoffs: [VaultSlot: Backoff] = [:]

    /// Sessions that the vault has yet to take, by slot.
    var unwritten: [VaultSlot: Session] {
        remainders.compactMapValues { if case .unwritten(let session) = $0 { session } else { nil } }
    }

    var isEmpty: Bool { remainders.isEmpty && ended.isEmpty }

    func hasUnwritten(of name: AccountName) -> Bool { unwritten.keys.contains { $0.account == name.rawValue } }

    /// A lane is gone: what the vault does not have of it, or is not to have, stays here.
    mutating func keep(_ state: LaneState, of account: Account) {
        if state.renewal.backoff.error != nil { backoffs[account.slot] = state.renewal.backoff }
        guard case .held(let session, let copy, _) = state.presence, !session.isOfService else { return }
        switch copy {
        case .stored: break
        case .unsaved: remainders[account.slot] = .unwritten(session)
        case .memoryOnly:
            remainders[account.slot] = .memoryOnly(Closed(account: account, session: session, retirement: nil))
        }
    }

    /// The vault did not take a session that no lane holds.
    mutating func keep(unwritten session: Session, in slot: VaultSlot) { remainders[slot] = .unwritten(session) }

    /// A change that was under way when its lane went has ended.
    mutating func update(_ session: Session, of account: Account) {
        guard case .memoryOnly? = remainders[account.slot] else { return }
        remainders[account.slot] = .memoryOnly(Closed(account: account, session: session, retirement: nil))
    }

    /// The vault holds what belongs in the slot now.
    mutating func settle(_ slot: VaultSlot) {
        if case .unwritten? = remainders[slot] { remainders[slot] = nil }
    }

    /// An account is back.
    mutating func takeUp(_ slot: VaultSlot) -> LaneState.Loaded? {
        switch remainders.removeValue(forKey: slot) {
        case .unwritten(let session): .session(session, .unsaved, isUrgent: false)
        case .memoryOnly(let closed): .session(closed.session, .memoryOnly, isUrgent: false)
        case nil: nil
        }
    }

    mutating func takeUpBackoff(_ slot: VaultSlot) -> Backoff? { backoffs.removeValue(forKey: slot) }

    /// A session that is nowhere but in memory goes, and its provider is to hear of it.
    mutating func end(_ session: Session, of account: Account) {
        ended.append(Closed(account: account, session: session, retirement: nil))
    }

    /// Those that were set aside in memory go too: their account may never be back. The provider that is told is the one
    /// that made them, as it was configured then.
    mutating func endMemoryOnly() {
        for (slot, remainder) in remainders {
            guard case .memoryOnly(let closed) = remainder else { continue }
            ended.append(closed)
            remainders[slot] = nil
        }
    }

    mutating func takeEnded() -> [Closed] {
        defer { ended = [] }
        return ended
    }
}
