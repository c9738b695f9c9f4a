internal import Secrets
internal import SessionVault

/// Opening and locking the vault. Opening loads every session; locking removes every session from memory.
extension SessionManager {
    /// Why no session can be read, if the vault is locked.
    var lockError: BrokerError? { vaultState.lockError }

    var isOpen: Bool { vaultState.isOpen }

    /// Waits until the account's entry of the vault has been read.
    func ready(_ name: AccountName, atMost bound: Duration = .seconds(90)) async throws(BrokerError) {
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
            if let (number, turn) = unlockAttempts.enter(caller), await turn.wait() == nil {
                if !unlockAttempts.giveUp(number) { unlockAttempts.ended(at: clock.bootInstant) }
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
            for name in sessionManager.residue.unwritten.keys.compactMap({ AccountName($0.account) }) {
                sessionManager.schedule.set(.save(name), at: sessionManager.clock.bootInstant)
            }
            sessionManager.firstOpening.fulfil(())
            sessionManager.record(.vaultOpened(keySource: sessionManager.vault.status.keySource))
            return nil
        }
    }

    /// Hides every session at once, lets running changes save their results, forgets everything and closes the vault.
    /// When it returns, nothing held in memory serves a session.
    func lockVault() async -> BrokerError? {
        if vault.status.kind == .memory {
            return .conflict(.session(.vaultInMemory))
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
            // A provider may be rotating a token at this moment. The new one must be in the vault before the key is
            // forgotten.
            let turns = Set(sessionManager.lanes.keys).union(sessionManager.tails.keys).map { name in
                sessionManager.enqueue(name) { await $0.forget(name) }
            }
            for turn in turns { await turn.settle() }
            sessionManager.residue.endMemoryOnly()
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
            residue.keep(unwritten: session, in: lane.account.slot)
        }
        guard let lane = lanes[name] else { return }
        if let session = lane.state.session, session.isEphemeral, !session.isConfigured {
            residue.end(session, of: lane.account)
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

    /// The accounts whose entries have not been read.
    var unloaded: [AccountName] { lanes.filter { !$0.value.state.isLoaded }.map(\.key) }

    /// Loads every account. At the start all of them are read together: a turn of each would take several times as
    /// long, and there may be hundreds.
    private func loadAll() {
        var together: [LaneID] = []
        for (name, lane) in lanes {
            if tails[name] == nil { together.append(lane.id) } else { load(name, isAfterReload: false) }
        }
        enqueue(inAll: together.map(\.account)) { [together] in
            await $0.loadInTurn(together, isAfterReload: false)
            $0.listTheRest()
        }
    }

    /// Asks the vault for the sessions of accounts that are not configured. A vault that hosts share gives a session to the
    /// database only after it was asked for it.
    private func listTheRest() {
        let known = Set(lanes.values.map(\.account.slot))
        work.start { [vault] in _ = try? await vault.slots(of: .session, besides: known) }
    }

    func load(_ name: AccountName, isAfterReload: Bool) {
        guard let id = lanes[name]?.id else { return }
        enqueue(name) { await $0.loadInTurn([id], isAfterReload: isAfterReload) }
    }

    /// Loads what is not loaded, in a turn of each account's lane.
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
            take(.loaded(residue.takeUp(lane.account.slot) ?? outcome, isAfterReload: isAfterReload), lane.id)
        }
    }
}

/// How long after a failed attempt a vault whose key source needs no user is opened again.
let openRetryInterval: Duration = .seconds(15)
