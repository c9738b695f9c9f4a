internal import Secrets
internal import SessionVault

/// How many wrong passphrases a process may try, and in what time. The passphrase is protected by the cost of its key
/// derivation. This limit keeps a faulty program from using up the processor; other programs are not affected.
private let attemptLimit = 5
private let attemptWindow: Duration = .seconds(60)

/// Opening and locking the vault. Opening loads every session; locking removes every session from memory.
extension SessionManager {
    /// Why no session can be read, if the vault is locked.
    var lockError: BrokerError? {
        if case .locked(let error, _) = vaultState { error } else { nil }
    }

    var isOpen: Bool { if case .open = vaultState { true } else { false } }

    /// Waits until the account's entry of the vault has been read.
    func ready(_ name: AccountName, atMost bound: Duration = .seconds(90)) async throws(BrokerError) {
        let end = ContinuousClock.now + bound
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        if lanes[name]?.state.isLoaded == true { return }
        guard await firstOpening.wait(atMost: bound) != nil else { throw Task.isCancelled ? .cancelled : .timedOut }
        if let lockError { throw lockError }
        if case .loading(let error?)? = lanes[name]?.state.presence { throw error }
        // A reload may put another lane in this one's place, which loads in its turn.
        while let lane = lanes[name], !lane.state.isLoaded, lane.loaded.value == nil {
            guard await lane.loaded.wait(atMost: max(end - .now, .zero)) != nil else {
                throw Task.isCancelled ? .cancelled : .timedOut
            }
            if let lockError { throw lockError }
            if case .loading(let error?)? = lanes[name]?.state.presence { throw error }
        }
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
    }

    /// Opens the vault and loads every account. An open one stays as it is.
    ///
    /// - Parameter pid: of the process that asked.
    func openVault(passphrase: Secret?, isAsked: Bool, by pid: Int32 = 0) async -> BrokerError? {
        // Checked before the turn too, so that a process over the limit takes no turn.
        if isAsked, let error = tooManyAttempts(pid) { return error }
        return await inVaultTurn { sessionManager in
            if case .open = sessionManager.vaultState { return nil }
            if case .locked(let error, isAsked: true) = sessionManager.vaultState, !isAsked { return error }
            if isAsked, let error = sessionManager.tooManyAttempts(pid) { return error }
            do throws(VaultError) {
                try await sessionManager.vault.open(passphrase: passphrase)
            } catch {
                let failure = BrokerError(opening: error)
                if isAsked {
                    sessionManager.refusedOpenings[pid, default: []].append(sessionManager.clock.bootInstant)
                    sessionManager.record(.vaultRefused(failure))
                }
                // A wrong passphrase does not change why the vault is locked.
                if failure != .wrongPassphrase {
                    sessionManager.vaultState = .locked(failure, isAsked: false)
                } else if case .unopened = sessionManager.vaultState {
                    sessionManager.vaultState = .locked(failure, isAsked: false)
                }
                sessionManager.firstOpening.fulfil(())
                sessionManager.schedule.set(.openVault, at: sessionManager.clock.bootInstant + openRetryInterval)
                return failure
            }
            sessionManager.vaultState = .open
            sessionManager.refusedOpenings = [:]
            sessionManager.schedule.remove(.openVault)
            for name in sessionManager.lanes.keys { sessionManager.load(name, isNews: false) }
            for name in sessionManager.residue.unwritten.keys.compactMap({ AccountName($0.account) }) {
                sessionManager.schedule.set(.save(name), at: sessionManager.clock.bootInstant)
            }
            sessionManager.firstOpening.fulfil(())
            sessionManager.record(.vaultOpened(keySource: sessionManager.vault.status.keySource))
            return nil
        }
    }

    private func tooManyAttempts(_ pid: Int32) -> BrokerError? {
        let now = clock.bootInstant
        refusedOpenings = refusedOpenings.mapValues { $0.filter { $0 > now - attemptWindow } }.filter {
            !$0.value.isEmpty
        }
        guard let own = refusedOpenings[pid], own.count >= attemptLimit, let first = own.first else { return nil }
        return .tooManyAttempts(retryAfter: (first + attemptWindow - now).secondsRoundedUp)
    }

    /// Hides every session at once, lets running changes save their results, forgets everything and closes the vault.
    /// When it returns, nothing held in memory serves a session.
    func lockVault() async -> BrokerError? {
        if vault.status.kind == .memory {
            return .conflict(
                "The sessions are in memory only and would be lost by locking. Sign out, or choose a key_source.")
        }
        return await inVaultTurn { sessionManager in
            if case .locked(_, isAsked: true) = sessionManager.vaultState { return nil }
            let reason = BrokerError.vaultLocked("The vault was locked.")
            sessionManager.vaultState = .locked(reason, isAsked: true)
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
            await save(session, lane.account).error != nil
        {
            // If it were forgotten it would be lost. It stays in memory, where no reader sees it.
            residue.keep(unwritten: session, in: lane.account.slot)
        }
        guard let lane = lanes[name] else { return }
        if let session = lane.state.session, session.isEphemeral, !session.isOfService {
            residue.end(session, of: lane.account)
        }
        take(.locked, lane.id)
        expectLoading(name)
        schedule.remove(.load(name))
    }

    /// Moves the vault's key to another key source.
    func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async -> BrokerError? {
        await inVaultTurn { sessionManager in
            if case .locked(let error, isAsked: true) = sessionManager.vaultState { return error }
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
    }

    private func inVaultTurn(
        _ body: @escaping @Sendable (isolated SessionManager) async -> BrokerError?
    ) async -> BrokerError? {
        let previous = vaultTurn
        let turn = Promise<Void>()
        vaultTurn = turn
        // The change runs to its end even if the caller goes away: a vault that is half locked is not locked.
        let done = work.start { () -> BrokerError? in
            await previous?.settle()
            let error = await body(self)
            turn.fulfil(())
            return error
        }
        guard let outcome = await done.wait() else { return .cancelled }
        return outcome
    }

    /// Refuses a sign-in whose session could not be stored, before the user is asked for anything.
    func admitsSession(_ name: AccountName) async throws(BrokerError) {
        try await ready(name)
        if let error = lanes[name]?.state.obstacle { throw error }
    }

    // MARK: Loading

    func load(_ name: AccountName, isNews: Bool) {
        guard let id = lanes[name]?.id else { return }
        enqueue(name) { await $0.loadInTurn(id, isNews: isNews) }
    }

    /// Loads what is not loaded, in a turn of the account's lane.
    func loadInTurn(_ id: LaneID, isNews: Bool) async {
        guard isOpen, let lane = lane(id), !lane.state.isLoaded else { return }
        if let session = lane.account.kind.configuredSession(of: lane.account, by: clock) {
            take(.loaded(.session(session, .memoryOnly, isUrgent: false), isNews: isNews), id)
            return
        }
        let found = await read(lane.account.slot)
        guard isOpen, self.lane(id) != nil else { return }
        // What could not be written to the vault is newer than what it holds.
        let loaded = residue.takeUp(lane.account.slot) ?? LaneState.Loaded(found, of: id.account, by: clock)
        take(.loaded(loaded, isNews: isNews), id)
    }

    private func read(_ slot: VaultSlot) async -> Result<VaultEntry?, VaultError> {
        do throws(VaultError) {
            return .success(try await vault.load(slot))
        } catch {
            return .failure(error)
        }
    }
}

/// How long after a failed attempt a vault whose key source needs no user is opened again.
let openRetryInterval: Duration = .seconds(15)
