internal import SessionVault

/// Sessions that belong to no lane any more: their account is locked, removed, or bound to another provider or client
/// now. Callers get nothing from here. A session is taken up again when its account is back, or its provider is told
/// that it has ended.
struct Residue: Sendable {
    private enum Remainder: Sendable {
        /// The vault could not be written. The write is repeated until it succeeds.
        case unwritten(Session)
        /// Must not be written to the disk. It ends when the daemon ends or the vault is locked.
        case memoryOnly(Closed)
    }

    private var remainders: [VaultSlot: Remainder] = [:]
    /// Sessions that have ended here and whose providers have not been told yet. The vault holds nothing of them.
    private var ended: [Closed] = []
    /// Back-off of lanes that have ended: a reload must not skip a provider's `Retry-After`.
    private var backoffs: [VaultSlot: Backoff] = [:]
    private var replaced: [VaultSlot: ReplacedSessions] = [:]
    /// Sessions that were replaced and are to be ended now.
    private var endedByReplacement: [Closed] = []

    /// Sessions that the vault does not hold yet, by slot.
    var unwritten: [VaultSlot: Session] {
        remainders.compactMapValues { if case .unwritten(let session) = $0 { session } else { nil } }
    }

    var isEmpty: Bool { remainders.isEmpty && ended.isEmpty && replaced.isEmpty && endedByReplacement.isEmpty }

    func hasUnwritten(of name: AccountName) -> Bool { unwritten.keys.contains { $0.account == name.rawValue } }

    /// A lane has ended. What the vault does not have of it, or must not have, is kept here.
    mutating func keep(_ state: LaneState, of account: Account) {
        if state.renewal.backoff.error != nil { backoffs[account.slot] = state.renewal.backoff }
        guard let held = state.held else { return }
        switch held.session.keeping {
        case .configuration: break
        case .memory: remainders[account.slot] = .memoryOnly(Closed(account: account, session: held.session))
        case .vault: if held.isUnsaved { remainders[account.slot] = .unwritten(held.session) }
        }
    }

    /// The vault could not store a session that no lane holds.
    mutating func keep(unwritten session: Session, in slot: VaultSlot) { remainders[slot] = .unwritten(session) }

    /// A change that was running when its lane ended is complete now.
    mutating func update(_ session: Session, of account: Account) {
        guard case .memoryOnly? = remainders[account.slot] else { return }
        remainders[account.slot] = .memoryOnly(Closed(account: account, session: session))
    }

    /// The vault now holds the newest record of the slot, or nothing.
    ///
    /// - Parameter retirement: the vault's identifier of the record that it held before, if it keeps that one.
    mutating func settle(_ slot: VaultSlot, retirement: String? = nil) {
        if case .unwritten? = remainders[slot] { remainders[slot] = nil }
        endedByReplacement += replaced.removeValue(forKey: slot)?.ended(retirement: retirement) ?? []
    }

    // MARK: Replaced sessions

    func replaced(in slot: VaultSlot) -> ReplacedSessions { replaced[slot] ?? ReplacedSessions() }

    /// Their providers are told once the slot is settled.
    mutating func replace(_ sessions: ReplacedSessions, in slot: VaultSlot) {
        replaced[slot] = sessions.isEmpty ? nil : sessions
    }

    /// A session that was to be ended is held again, for example because another program handed it in.
    mutating func keep(where isHeldAgain: (Session) -> Bool) {
        endedByReplacement.removeAll { isHeldAgain($0.session) }
    }

    mutating func takeReplaced() -> [Closed] {
        defer { endedByReplacement = [] }
        return endedByReplacement
    }

    /// An account is back. Returns its session, if one is kept here.
    mutating func takeUp(_ slot: VaultSlot) -> LaneState.Loaded? {
        switch remainders.removeValue(forKey: slot) {
        case .unwritten(let session): .session(HeldSession(session, isUnsaved: true))
        case .memoryOnly(let closed): .session(HeldSession(closed.session))
        case nil: nil
        }
    }

    mutating func takeUpBackoff(_ slot: VaultSlot) -> Backoff? { backoffs.removeValue(forKey: slot) }

    /// A session that is in memory only ends, and its provider has to be told.
    mutating func end(_ session: Session, of account: Account) {
        ended.append(Closed(account: account, session: session))
    }

    /// Ends the memory-only sessions whose lanes have ended: their account may never be back. The provider that issued
    /// them is told, with the account's configuration of that time.
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
