public import RingbackBase
internal import SessionVault

/// Opening and locking the vault. Opening loads every session; locking removes every session from memory.
extension SessionManager {
    /// Why no session can be read, if the vault is locked.
    var lockError: BrokerError? { vaultState.lockError }
    var isOpen: Bool { vaultState.isOpen }

    /// Waits until the account's entry of the vault has been read.
    public func ready(_ name: AccountName, atMost bound: Duration = .seconds(90)) async throws(BrokerError) {
        let end = ContinuousClock.now + bound
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        if lanes[name]?.state.isLoaded == true { return }
        guard await firstOpening.wait(atMost: bound) != nil else { throw .endOfWait }
        // A reload may put another lane in this one's place, which loads in its turn.
        while true {
            if let lockError { throw lockError }
            guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
            if case .loading(let error?) = lane.state.presence { throw error }
            guard !lane.state.isLoaded, lane.loaded.value == nil else { return }
            guard await lane.loaded.wait(atMost: max(end - .now, .zero)) != nil else { throw .endOfWait }
        }
    }

    /// Opens the vault and loads every account. An open one stays as it is.
    func openVault(
        passphrase: Secret?, isAsked: Bool, by caller: UnlockCaller = UnlockCaller()
    ) async -> BrokerError? {
        if isAsked {
            // Checked before the turn too, so that a process over the limit takes no turn.
            if let error = vaultState.refusal(of: caller.process, at: clock.bootInstant) { return error }
            if let turn = unlockAttempts.enter(caller), await turn.wait() == nil {
                if !unlockAttempts.giveUp(turn) { unlockAttempts.ended(at: clock.bootInstant) }
                return .cancelled
            }
        }
        return await inVaultTurn { sessionManager in
            // The change runs to its end even if the caller disconnects, so the next attempt begins here.
            defer { if isAsked { sessionManager.unlockAttempts.ended(at: sessionManager.clock.bootInstant) } }
            if sessionManager.isOpen { return nil }
            if !isAsked, let error = sessionManager.vaultState.userLock { return error }
            let now = sessionManager.clock.bootInstant
            if isAsked, let error = sessionManager.vaultState.refusal(of: caller.process, at: now) { return error }
            let changes = sessionManager.vaultState.sourceChanges
            do throws(VaultError) {
                try await sessionManager.vault.open(passphrase: passphrase)
            } catch {
                let (failure, now) = (BrokerError(opening: error), sessionManager.clock.bootInstant)
                sessionManager.vaultState.failed(failure, by: isAsked ? caller.process : nil, at: now)
                if isAsked {
                    sessionManager.unlockAttempts.failed(caller, at: now)
                    sessionManager.record(.vaultRefused(failure))
                }
                sessionManager.firstOpening.fulfil(())
                sessionManager.schedule.set(
                    .openVault, at: sessionManager.vaultState.nextAttempt(after: changes, at: now))
                return failure
            }
            sessionManager.vaultState.opened()
            sessionManager.schedule.remove(.openVault)
            sessionManager.loadAll()
            for name in sessionManager.detached.unwritten.keys.compactMap({ AccountName($0.account) }) {
                sessionManager.schedule.set(.save(name), at: sessionManager.clock.bootInstant)
            }
            sessionManager.firstOpening.fulfil(())
            sessionManager.record(.vaultOpened(keySource: sessionManager.vault.status.keySource))
            return nil
        }
    }

    /// Hides every session, lets running changes save their results, forgets everything and closes the vault.
    func lockVault() async -> BrokerError? {
        if vault.status.kind == .memory {
            return .conflict(
                .stated(
                    "The sessions are in memory only and would be lost by locking. Sign out, or choose a key_source."))
        }
        return await inVaultTurn { sessionManager in
            if sessionManager.vaultState.userLock != nil { return nil }
            sessionManager.vaultState.lock()
            sessionManager.schedule.remove(.openVault)
            // Locked before it was ever open: callers that wait for the first opening stop waiting.
            sessionManager.firstOpening.fulfil(())
            for name in sessionManager.lanes.keys {
                sessionManager.publish(name)
                sessionManager.plan(name)
            }
            // A provider may be rotating a token now: the new one must be in the vault before the key is forgotten.
            let turns = Set(sessionManager.lanes.keys).union(sessionManager.tails.keys).map { name in
                sessionManager.enqueue(name) { await $0.forget(name) }
            }
            for turn in turns { await turn.settle() }
            sessionManager.detached.endMemoryOnly()
            do throws(VaultError) {
                try await sessionManager.vault.close()
            } catch {
                return BrokerError(error)
            }
            sessionManager.record(.vaultLocked)
            return nil
        }
    }

    private func forget(_ name: AccountName) async {
        if let lane = lanes[name], lane.state.isUnsaved, let session = lane.state.session,
            await save(session, lane.account) != nil
        {
            // If it were forgotten it would be lost. It stays in memory, where no reader sees it.
            detached.keep(unwritten: session, in: lane.account.slot)
        }
        guard let lane = lanes[name] else { return }
        if let session = lane.state.session, session.isEphemeral, !session.isConfigured {
            detached.end(session, of: lane.account)
        }
        take(.locked, lane.id)
        expectLoading(name)
        schedule.remove(.load(name))
        resume(name)
    }

    /// Refuses a sign-in whose session could not be stored, before the user is asked for anything.
    func admitsSession(_ name: AccountName) async throws(BrokerError) {
        try await ready(name)
        if let error = lanes[name]?.state.obstacle { throw error }
    }

    // MARK: Loading

    var unloaded: [AccountName] { lanes.values.filter { !$0.state.isLoaded }.map(\.account.name) }

    /// Loads every account, at the start all together: a turn of each would take several times as long.
    private func loadAll() {
        var together: [LaneID] = []
        for id in lanes.values.map(\.id) {
            if tails[id.account] == nil { together.append(id) } else { load(id.account, isAfterReload: false) }
        }
        enqueue(inAll: together.map(\.account)) { [together] in
            await $0.loadInTurn(together, isAfterReload: false)
            $0.listTheRest()
        }
    }

    /// Asks for the sessions of unconfigured accounts: a shared vault gives a session to the database only then.
    private func listTheRest() {
        let known = Set(lanes.values.map(\.account.slot))
        work.start { [vault] in _ = try? await vault.slots(of: .session, besides: known) }
    }

    func load(_ name: AccountName, isAfterReload: Bool) {
        guard let id = lanes[name]?.id else { return }
        enqueue(name) { await $0.loadInTurn([id], isAfterReload: isAfterReload) }
    }

    func loadInTurn(_ ids: [LaneID], isAfterReload: Bool) async {
        guard isOpen else { return }
        var stored: [Lane] = []
        for lane in ids.compactMap(lane) where !lane.state.isLoaded {
            if let session = lane.account.kind.configuredSession(of: lane.account, by: clock) {
                take(.loaded(.session(HeldSession(session)), isAfterReload: isAfterReload), lane.id)
            } else {
                stored.append(lane)
            }
        }
        let found = await store.load(stored.map { ($0.id.account, $0.account.slot) }, with: work)
        for (lane, outcome) in zip(stored, found) {
            guard isOpen, self.lane(lane.id) != nil else { continue }
            // What could not be written to the vault is newer than what it holds.
            take(.loaded(detached.restore(lane.account.slot) ?? outcome, isAfterReload: isAfterReload), lane.id)
        }
    }
}

/// How long after a failed attempt a vault whose key source needs no user is opened again.
let openRetryInterval: Duration = .seconds(15)

public struct UnlockCaller: Sendable {
    let process: Int32
    let groups: Set<String>
    let sessionStart: UInt64?

    /// - Parameters:
    ///   - process: its process id. After five failed attempts in a minute it gets `tooManyAttempts`.
    ///   - groups: what it has in common with other processes of the same program, such as its session.
    ///   - sessionStart: when its session began, in clock ticks since the machine started; nil if that is not known.
    public init(process: Int32 = 0, groups: Set<String> = [], sessionStart: UInt64? = nil) {
        self.process = process
        self.groups = groups.union(["process \(process)"])
        self.sessionStart = sessionStart
    }
}

/// The attempts of callers to open the vault: one at a time, since each may derive a key. A program with recent
/// failures waits for those without, so one that guesses passphrases, by many processes or a session for each guess,
/// cannot keep others out.
struct UnlockAttempts: Sendable {
    private static let window: Duration = .seconds(60)

    private var isRunning = false
    private var waiting: [(caller: UnlockCaller, turn: Promise<Void>)] = []
    private var failures: [String: [BootInstant]] = [:]

    mutating func enter(_ caller: UnlockCaller) -> Promise<Void>? {
        guard isRunning else {
            isRunning = true
            return nil
        }
        let turn = Promise<Void>()
        waiting.append((caller, turn))
        return turn
    }

    /// Removes a caller that has disconnected. False if its turn has come already.
    mutating func giveUp(_ turn: Promise<Void>) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.turn === turn }) else { return false }
        waiting.remove(at: index)
        return true
    }

    mutating func failed(_ caller: UnlockCaller, at now: BootInstant) {
        for group in caller.groups { failures[group, default: []].append(now) }
    }

    /// An attempt has ended, and the next one begins: that of the caller with the fewest recent failures. Among equals,
    /// the caller with the oldest session is next, and among these the first to ask.
    mutating func ended(at now: BootInstant) {
        failures = failures.mapValues { $0.filter { $0 > now - UnlockAttempts.window } }.filter { !$0.value.isEmpty }
        let rank = { [failures] (caller: UnlockCaller) -> (Int, UInt64) in
            (caller.groups.map { failures[$0]?.count ?? 0 }.max() ?? 0, caller.sessionStart ?? .max)
        }
        // `min` takes the first of equals.
        guard let next = waiting.min(by: { rank($0.caller) < rank($1.caller) }) else {
            isRunning = false
            return
        }
        waiting.removeAll { $0.turn === next.turn }
        next.turn.fulfil(())
    }
}

/// How many wrong passphrases a process may try, and in what time: a faulty program must not use up the processor. The
/// cost of the key derivation protects the passphrase.
private let attemptLimit = 5
private let attemptWindow: Duration = .seconds(60)

/// Whether the vault is open, and if it is not, why, and who may try to open it.
struct VaultState: Sendable {
    private enum Access {
        /// No attempt to open it has ended yet.
        case unopened
        case open
        /// `isAsked`: a user locked it, so that only a user's request opens it.
        case locked(BrokerError, isAsked: Bool)
    }

    private var access = Access.unopened
    /// Failed attempts to open the vault, by process number.
    private var refusals: [Int32: [BootInstant]] = [:]

    var isOpen: Bool { if case .open = access { true } else { false } }

    /// Why no session can be read; nil while the vault is open, and before the first attempt to open it has ended.
    var lockError: BrokerError? { if case .locked(let error, _) = access { error } else { nil } }
    var userLock: BrokerError? { if case .locked(let error, isAsked: true) = access { error } else { nil } }

    /// How often the key source may have become available: an attempt that fails is repeated at once if this has risen.
    private(set) var sourceChanges = 0

    /// The key source may be available now.
    ///
    /// - Returns: ``isToBeOpened``.
    mutating func sourceChanged() -> Bool {
        sourceChanges += 1
        return isToBeOpened
    }

    /// When to try again after an attempt that failed, and that began when ``sourceChanges`` was `changes`.
    func nextAttempt(after changes: Int, at now: BootInstant) -> BootInstant {
        changes == sourceChanges ? now + openRetryInterval : now
    }

    /// True if an attempt has failed, and the next one needs no user.
    var isToBeOpened: Bool { lockError != nil && userLock == nil }

    /// Why a process may not try to open the vault now; nil if it may.
    mutating func refusal(of pid: Int32, at now: BootInstant) -> BrokerError? {
        refusals = refusals.mapValues { $0.filter { $0 > now - attemptWindow } }.filter { !$0.value.isEmpty }
        guard let own = refusals[pid], own.count >= attemptLimit, let first = own.first else { return nil }
        return .tooManyAttempts(retryAfter: (first + attemptWindow - now).secondsRoundedUp)
    }

    mutating func opened() {
        access = .open
        refusals = [:]
    }

    mutating func failed(_ error: BrokerError, by pid: Int32?, at now: BootInstant) {
        if let pid { refusals[pid, default: []].append(now) }
        // A wrong passphrase does not change why the vault is locked.
        if error == .wrongPassphrase, lockError != nil { return }
        access = .locked(error, isAsked: false)
    }

    mutating func lock() { access = .locked(.vaultLocked(.stated("The vault is locked.")), isAsked: true) }
}

extension Broker {
    /// Returns when the first attempt to open the vault has ended, successfully or not.
    public func vaultSettled() async { _ = await sessionManager.firstOpening.wait() }

    /// Like ``vaultSettled()``, with a bound, since a keyring may prompt the user first.
    public func vaultSettled(atMost bound: Duration) async throws(BrokerError) {
        guard await sessionManager.firstOpening.wait(atMost: bound) != nil else { throw .endOfWait }
    }

    /// Waits until the first attempt has ended and, if it succeeded, the accounts' entries were read: for the start and
    /// a reload, within the bound. A locked keyring may take longer.
    public func accountsSettled(atMost bound: Duration) async {
        let end = ContinuousClock.now + bound
        guard await sessionManager.firstOpening.wait(atMost: bound) != nil else { return }
        for name in await sessionManager.unloaded {
            try? await sessionManager.ready(name, atMost: max(end - .now, .zero))
        }
    }

    /// Waits a second at most for a vault that is being opened: a caller that is told so may ask for a session at once.
    public func openingSettled() async {
        _ = await sessionManager.vaultTurn?.wait(atMost: .seconds(1))
    }

    /// Locks the vault: sessions cannot be read, none is left in memory, and the vault's key is forgotten.
    ///
    /// - Throws: `conflict` if the sessions are in memory only.
    public func lockVault() async throws(BrokerError) {
        if let error = await sessionManager.lockVault() { throw error }
        await revocations.forget()
        for closed in await sessionManager.takeOrphans() {
            work.start { [tools] in await closed.revokeOnce(with: tools) }
        }
    }

    /// Opens the vault. The passphrase is for a key source that asks for one.
    public func unlockVault(
        passphrase: Secret?, by caller: UnlockCaller = UnlockCaller()
    ) async throws(BrokerError) {
        if let error = await sessionManager.openVault(passphrase: passphrase, isAsked: true, by: caller) {
            throw error
        }
        await accountsSettled(atMost: .seconds(1))
    }

    /// Opens the vault as the daemon does by itself: what it lacked may be there now. Does nothing if it is open.
    public func openVaultAgain() async throws(BrokerError) {
        if let error = await sessionManager.openVault(passphrase: nil, isAsked: false) { throw error }
        await accountsSettled(atMost: .seconds(1))
    }

    /// Moves the vault's key to another key source. The passphrase is for the new one.
    public func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async throws(BrokerError) {
        let error = await sessionManager.inVaultTurn { sessionManager in
            if let error = sessionManager.vaultState.userLock { return error }
            let former = sessionManager.vault.status.keySource
            do throws(VaultError) {
                // The vault may be closed because the configuration already names another key source. The vault decides
                // whether that is an obstacle: this call is what moves the key there.
                try await sessionManager.vault.rekey(to: choice, passphrase: passphrase)
            } catch {
                // If the vault was opened for the move only and the move failed, it is closed again.
                if sessionManager.lockError != nil { try? await sessionManager.vault.close() }
                return BrokerError(error)
            }
            sessionManager.record(.vaultRekeyed(from: former, to: sessionManager.vault.status.keySource))
            if sessionManager.lockError != nil {
                sessionManager.schedule.set(.openVault, at: sessionManager.clock.bootInstant)
            }
            return nil
        }
        if let error { throw error }
    }

    /// How many signed-out sessions have not been revoked at their providers yet, by account.
    public func pendingRevocations() async -> [AccountName: Int] { await revocations.counts() }
}
