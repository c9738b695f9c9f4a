internal import Secrets
internal import SessionVault

/// A process may try a wrong passphrase this often, in this time. What guards the passphrase is the cost of
/// its derivation; this keeps a program that goes wrong from using the processor, and no other program out.
private let attemptLimit = 5
private let attemptWindow: Duration = .seconds(60)

/// The vault's doors: opening brings every session back, locking takes every one out of reach and out of memory.
extension SessionManager {
    /// Why no session can be had, if that is so.
    var lockError: BrokerError? {
        if case .locked(let error, _) = vaultState { error } else { nil }
    }

    var isOpen: Bool { if case .open = vaultState { true } else { false } }

    /// Waits until the vault has told what it holds for the account.
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
        // At once, so that those who may not try take no turn.
        if isAsked, let error = attemptRefusal(pid) { return error }
        return await inVaultTurn { sessionManager in
            if case .open = sessionManager.vaultState { return nil }
            if case .locked(let error, isAsked: true) = sessionManager.vaultState, !isAsked { return error }
            if isAsked, let error = sessionManager.attemptRefusal(pid) { return error }
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

    private func attemptRefusal(_ pid: Int32) -> BrokerError? {
        let now = clock.bootInstant
        refusedOpenings = refusedOpenings.mapValues { $0.filter { $0 > now - attemptWindow } }.filter {
            !$0.value.isEmpty
        }
        guard let own = refusedOpenings[pid], own.count >= attemptLimit, let first = own.first else { return nil }
        return .tooManyAttempts(retryAfter: (first + attemptWindow - now).secondsRoundedUp)
    }

    /// Takes every session out of reach at once, lets changes under way save what they got, forgets everything and
    /// closes the vault. When it returns, nothing held in memory serves a session.
    func lockVault() async -> BrokerError? {
        if vault.status.keySource == "memory" {
            return .conflict(
                "The sessions are in memory only: locking would lose them. Sign out, or choose a key_source.")
        }
        return await inVaultTurn { sessionManager in
            if case .locked(_, isAsked: true) = sessionManager.vaultState { return nil }
            let reason = BrokerError.vaultLocked("The vault was locked.")
            sessionManager.vaultState = .locked(reason, isAsked: true)
            sessionManager.schedule.remove(.openVault)
            // Locked before it was ever open: whoever waits for the first opening waits no longer.
            sessionManager.firstOpening.fulfil(())
            for name in sessionManager.lanes.keys {
                sessionManager.publish(name)
                sessionManager.plan(name)
            }
            // A provider may be rotating a token at this moment: it must rest in the vault before the key goes.
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
            // It is lost if it is forgotten: it stays, out of everybody's reach.
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

    /// Puts the vault's key elsewhere.
    func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async -> BrokerError? {
        await inVaultTurn { sessionManager in
            if case .locked(let error, isAsked: true) = sessionManager.vaultState { return error }
            let former = sessionManager.vault.status.keySource
            do throws(VaultError) {
                // One that is closed because the configuration names another place already is the vault's to judge: this
                // is how the key gets there.
                try await sessionManager.vault.rekey(to: choice, passphrase: passphrase)
            } catch {
                // What was opened for the move alone does not stay open without it.
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
        // Whoever asked may go away; a vault that is half locked is none.
        let done = work.start { () -> BrokerError? in
            await previous?.settle()
            let error = await body(self)
            turn.fulfil(())
            return error
        }
        guard let outcome = await done.wait() else { return .cancelled }
        return outcome
    }

    /// Refuses a sign-in that could not be kept, before a person is asked for anything.
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
        if let session = lane.account.configuredSession(by: clock) {
            take(.loaded(.session(session, .memoryOnly, isUrgent: false), isNews: isNews), id)
            return
        }
        let found = await read(lane.account.slot)
        guard isOpen, self.lane(id) != nil else { return }
        // What the vault could not be made to take is newer than what it holds.
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

/// A locked vault whose source needs no person is tried again after this long.
let openRetryInterval: Duration = .seconds(15)
