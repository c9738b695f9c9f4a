internal import SessionVault

/// The pending revocations of sessions that have ended here. The vault keeps each session until its provider has
/// confirmed, so that neither an outage nor a restart leaves a signed-out session valid at the provider.
actor Revocations {
    struct Entry {
        var closed: Closed
        var failures = 0
        /// Of the last attempt.
        var error: BrokerError?
        var refusals = 0
        var dueAt = BootInstant(milliseconds: 0)
        var isRunning = false
        var isUnsealed = false

        var account: AccountName { closed.account.name }
    }

    private(set) var entries: [String: Entry] = [:]
    /// The last error of revocations that are not tried again.
    private var abandoned: [AccountName: BrokerError] = [:]
    /// The revocations that this run of the daemon has finished. The vault may be slow to delete their entries.
    private var finished: Set<String> = []
    private var unsealedCount = 0
    private var hasLoaded = false
    private let sessionManager: SessionManager
    private var tools: ProviderTools { sessionManager.tools }
    private var vault: any Vault { tools.vault }
    private var clock: BrokerClock { tools.clock }
    private var record: @Sendable (BrokerFact) -> Void { tools.record }

    private static let shortest: Duration = .seconds(15)
    private static let longest: Duration = .seconds(3_600)
    /// After so many error responses the provider is not asked again. A provider that cannot be reached does not count.
    private static let maxRefusals = 8
    private static let idlePause: Duration = .seconds(30)

    init(sessionManager: SessionManager) { self.sessionManager = sessionManager }

    func counts() -> [AccountName: Int] {
        entries.values.reduce(into: [:]) { $0[$1.account, default: 0] += 1 }
    }

    /// Revocations that are still to be sent, or that the provider has refused, by account.
    func undelivered() -> [AccountName: RevocationState] {
        var outcomes: [AccountName: RevocationState] = abandoned.mapValues { .refused($0) }
        for entry in entries.values {
            if let error = entry.error, error.refusesRevocation {
                outcomes[entry.account] = .refused(error)
            } else if outcomes[entry.account] == nil {
                outcomes[entry.account] = .pending
            }
        }
        return outcomes
    }

    /// The next look reads the vault again: it may keep revocations of an account that is back.
    func reload() { hasLoaded = false }

    /// The vault was locked: pending revocations are read from it when it opens again.
    func forget() {
        entries = entries.filter { $0.value.isRunning || $0.value.isUnsealed }
        hasLoaded = false
    }

    /// Tells the provider of a sign-out. If that fails, it is tried again later.
    @discardableResult
    func deliver(_ closed: Closed) async -> RevocationState {
        if closed.retirement == nil { unsealedCount += 1 }
        let id = closed.retirement ?? "unsealed \(unsealedCount)"
        // The search for what is due may have found it in the vault first.
        guard !finished.contains(id) else { return .revoked }
        guard entries[id]?.isRunning != true else { return .pending }
        entries[id] = Entry(closed: closed, isRunning: true, isUnsealed: closed.retirement == nil)
        return await revoke(id, closed)
    }

    func deliverReplaced() async {
        for closed in await sessionManager.takeReplaced() { sessionManager.work.start { await self.deliver(closed) } }
    }

    @discardableResult
    private func revoke(_ id: String, _ closed: Closed) async -> RevocationState {
        let (provider, name) = (closed.account.provider(with: tools), closed.account.name)
        let isOffered: Bool
        do throws(BrokerError) {
            isOffered = try await provider.revoke(closed.session, endingAll: closed.endsAll)
        } catch {
            postpone(await sealed(id), name, error)
            return error.refusesRevocation ? .refused(error) : .pending
        }
        record(isOffered ? .revocationDelivered(name) : .revocationNotOffered(name))
        abandoned[name] = nil
        await finish(id)
        return isOffered ? .revoked : .notOffered
    }

    /// Stores an ended session in the vault if that was not possible when it ended, unless the session must not be
    /// written. Returns the identifier of the entry, which changes if the session is stored.
    private func sealed(_ id: String) async -> String {
        guard let closed = entries[id]?.closed, entries[id]?.isUnsealed == true, !closed.session.isEphemeral,
            let kept = try? await SessionStore(vault: vault, clock: clock).keep(
                ended: closed.session, of: closed.account.slot),
            var entry = entries.removeValue(forKey: id)
        else { return id }
        entry.isUnsealed = false
        entry.closed.retirement = kept
        entries[kept] = entry
        return kept
    }

    private func postpone(_ id: String, _ name: AccountName, _ error: BrokerError) {
        guard var entry = entries[id] else { return }
        entry.isRunning = false
        entry.failures += 1
        entry.error = error
        if error.refusesRevocation { entry.refusals += 1 }
        let half = min(Revocations.shortest * (1 << min(entry.failures - 1, 10)), Revocations.longest) / 2
        entry.dueAt = clock.bootInstant + half + half * Double.random(in: 0...1)
        entries[id] = entry
        record(.revocationPostponed(name, error))
    }

    /// Forgets a revocation whose entry was removed from the vault, whether or not the provider has been told.
    func drop(_ id: String) {
        finished.insert(id)
        entries[id] = nil
    }

    private func finish(_ id: String) async {
        finished.insert(id)
        // If the vault cannot delete it, the next start finds it again and revokes the token twice, which does no harm.
        if entries.removeValue(forKey: id)?.isUnsealed == false { try? await vault.discard(id) }
    }

    func runDue() async -> Duration {
        await deliverReplaced()
        if !hasLoaded { await load() }
        let now = clock.bootInstant
        for (id, found) in entries where found.dueAt <= now && !found.isRunning {
            guard let closed = await begin(id, found, by: now) else { continue }
            sessionManager.work.start { [self] in await revoke(id, closed) }
        }
        return Revocations.idlePause
    }

    /// Tells the provider what it has not been told yet, except `recent`, of which it was told a moment ago.
    func retry(_ name: AccountName, besides recent: String?) async {
        if !hasLoaded { await load() }
        for (id, found) in entries where found.account == name && id != recent && !found.isRunning {
            guard let closed = await begin(id, found, by: nil) else { continue }
            await revoke(id, closed)
        }
    }

    /// Marks an entry as running if it is due by `now` (nil: a user asks for it). Nil if there is nothing to tell now.
    private func begin(_ id: String, _ found: Entry, by now: BootInstant?) async -> Closed? {
        guard let account = await current(found),
            let isHeld = await isHeld(found.closed.session, by: account),
            let entry = entries[id], !entry.isRunning, now.map({ entry.dueAt <= $0 }) ?? true
        else { return nil }
        if isHeld {
            // It is in use again, or the daemon ended before it could discard what a repeated write had retired.
            await finish(id)
            return nil
        }
        if entry.refusals >= Revocations.maxRefusals {
            record(.revocationAbandoned(entry.account))
            abandoned[entry.account] = entry.error
            await finish(id)
            return nil
        }
        entries[id]?.isRunning = true
        var closed = entry.closed
        closed.account = account
        return closed
    }

    /// The account as configured now, if the session is still bound to it: its secret may have changed.
    private func current(_ entry: Entry) async -> Account? {
        guard let account = try? await sessionManager.account(entry.account),
            account.slot == entry.closed.account.slot
        else { return nil }
        return account
    }

    /// True if it is the session that the account has, with whatever tokens. Nil if it is not known what the vault
    /// holds of the account: after a start it waits for that, since the next look may be half a minute away.
    private func isHeld(_ session: Session, by account: Account) async -> Bool? {
        let provider = account.provider(with: tools)
        guard let family = provider.family(of: session) else { return false }
        try? await sessionManager.ready(account.name, atMost: .seconds(10))
        guard let state = await sessionManager.lanes[account.name]?.state, state.isLoaded else { return nil }
        // A sign-out tells the provider itself when it is done.
        guard state.signOutsInProgress == 0 else { return nil }
        return state.session.map { provider.family(of: $0) == family } ?? false
    }

    private func load() async {
        guard await sessionManager.isOpen, let retired = try? await vault.retired() else { return }
        hasLoaded = true
        for entry in retired where entries[entry.id] == nil {
            // The provider was told, or there is nothing to tell: another host had recorded the session's end.
            if finished.contains(entry.id) || SessionRecord.isOfEnd(entry.text) {
                try? await vault.discard(entry.id)
                continue
            }
            guard let name = AccountName(entry.slot.account), let account = try? await sessionManager.account(name),
                account.slot == entry.slot, let session = try? SessionRecord.decode(entry.text, by: clock)
            else { continue }
            // During the `await` above the account's own sign-out may have begun to tell the provider.
            guard entries[entry.id] == nil, !finished.contains(entry.id) else { continue }
            entries[entry.id] = Entry(
                closed: Closed(
                    account: account, session: session, endsAll: SessionRecord.endsAll(entry.text),
                    retirement: entry.id))
        }
    }
}

/// Sessions without a lane: their account is locked, removed, or bound to another provider or client now. Callers get no
/// tokens of them. A session returns to a lane when its account is back, or it is ended at its provider.
struct DetachedSessions: Sendable {
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
    private var endedByReplacement: [Closed] = []

    /// Sessions that the vault does not hold yet, by slot.
    var unwritten: [VaultSlot: Session] {
        remainders.compactMapValues { if case .unwritten(let session) = $0 { session } else { nil } }
    }

    var isEmpty: Bool { remainders.isEmpty && ended.isEmpty && replaced.isEmpty && endedByReplacement.isEmpty }

    func hasUnwritten(of name: AccountName) -> Bool { unwritten.keys.contains { $0.account == name.rawValue } }

    /// Keeps the session of a lane that has ended, if it is in memory only.
    mutating func keep(_ state: LaneState, of account: Account) {
        if state.renewal.backoff.error != nil { backoffs[account.slot] = state.renewal.backoff }
        guard let held = state.held else { return }
        switch held.session.keeping {
        case .configuration: break
        case .memory: remainders[account.slot] = .memoryOnly(Closed(account: account, session: held.session))
        case .vault: if held.isUnsaved { remainders[account.slot] = .unwritten(held.session) }
        }
    }

    mutating func keep(unwritten session: Session, in slot: VaultSlot) { remainders[slot] = .unwritten(session) }

    /// A change that was running when its lane ended is complete now.
    mutating func update(_ session: Session, of account: Account) {
        guard case .memoryOnly? = remainders[account.slot] else { return }
        remainders[account.slot] = .memoryOnly(Closed(account: account, session: session))
    }

    /// The vault holds the slot's newest record, or nothing. `retirement` identifies the former record, if it is kept.
    mutating func settle(_ slot: VaultSlot, retirement: String? = nil) {
        if case .unwritten? = remainders[slot] { remainders[slot] = nil }
        endedByReplacement += replaced.removeValue(forKey: slot)?.ended(retirement: retirement) ?? []
    }

    // MARK: Replaced sessions

    func replaced(in slot: VaultSlot) -> ReplacedSessions { replaced[slot] ?? ReplacedSessions() }

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

    mutating func restore(_ slot: VaultSlot) -> LaneState.Loaded? {
        switch remainders.removeValue(forKey: slot) {
        case .unwritten(let session): .session(HeldSession(session, isUnsaved: true))
        case .memoryOnly(let closed): .session(HeldSession(closed.session))
        case nil: nil
        }
    }

    mutating func restoreBackoff(_ slot: VaultSlot) -> Backoff? { backoffs.removeValue(forKey: slot) }

    mutating func end(_ session: Session, of account: Account) {
        ended.append(Closed(account: account, session: session))
    }

    /// Ends the memory-only sessions without a lane, by the account's former configuration: it may never be back.
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

/// Replaced sessions of one slot whose replacement could not be written to the vault yet: a restart would bring back
/// the one in it, so none of them is ended at the provider before.
struct ReplacedSessions: Sendable {
    /// The session whose record the vault holds; nil if that is the session that the lane holds, or none.
    private var stored: Closed?
    private var others: [Closed] = []

    /// True if the record in the vault is of a session that has to be ended, not only overwritten.
    var holdsStored: Bool { stored != nil }

    /// True if this is the stored session, with whatever tokens.
    func isStored(_ session: Session, with tools: ProviderTools) -> Bool {
        guard let stored else { return false }
        let provider = stored.account.provider(with: tools)
        return provider.family(of: stored.session) == provider.family(of: session)
    }

    var isEmpty: Bool { stored == nil && others.isEmpty }

    mutating func add(_ closed: Closed) {
        if stored == nil { stored = closed } else { others.append(closed) }
    }

    /// A session that was replaced is held again, for example because another program handed it in. It is not ended.
    mutating func remove(where isHeldAgain: (Session) -> Bool) {
        if let stored, isHeldAgain(stored.session) { self.stored = nil }
        others.removeAll { isHeldAgain($0.session) }
    }

    /// The sessions to be ended. `retirement` identifies the stored one in the vault until the provider was told.
    func ended(retirement: String?) -> [Closed] {
        guard var stored else { return others }
        stored.retirement = retirement
        return [stored] + others
    }
}
