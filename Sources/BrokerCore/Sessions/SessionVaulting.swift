internal import Secrets
internal import SessionVault

/// A wrong passphrase may be tried this often, in this time.
private let attemptLimit = 5
private let attemptWindow: Duration = .seconds(60)
/// What the vault would not tell is asked for again after this long.
private let loadRetryInterval: Duration = .seconds(5)

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
        if lanes[name]?.isLoaded == true { return }
        guard await firstOpening.wait(atMost: bound) != nil else { throw Task.isCancelled ? .cancelled : .timedOut }
        if let lockError { throw lockError }
        if let error = lanes[name]?.loadFailure { throw error }
        // A reload may put another lane in this one's place, which loads in its turn.
        while let lane = lanes[name], !lane.isLoaded, lane.load.value == nil {
            guard await lane.load.wait(atMost: max(end - .now, .zero)) != nil else {
                throw Task.isCancelled ? .cancelled : .timedOut
            }
            if let lockError { throw lockError }
            if let error = lanes[name]?.loadFailure { throw error }
        }
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
    }

    /// Opens the vault and loads every account. An open one stays as it is.
    func openVault(passphrase: Secret?, isAsked: Bool) async -> BrokerError? {
        await inVaultTurn { sessionManager in
            if case .open = sessionManager.vaultState { return nil }
            if case .locked(let error, isAsked: true) = sessionManager.vaultState, !isAsked { return error }
            if isAsked, let error = sessionManager.attemptRefusal() { return error }
            do throws(VaultError) {
                try await sessionManager.vault.open(passphrase: passphrase)
            } catch {
                let failure = BrokerError(opening: error)
                if isAsked {
                    sessionManager.refusedOpenings.append(sessionManager.clock.bootInstant)
                    sessionManager.record(.vaultRefused(failure))
                }
                // A wrong passphrase does not change why the vault is locked.
                if failure != .wrongPassphrase {
                    sessionManager.vaultState = .locked(failure, isAsked: false)
                } else if case .unopened = sessionManager.vaultState {
                    sessionManager.vaultState = .locked(failure, isAsked: false)
                }
                sessionManager.firstOpening.fulfil(())
                sessionManager.note(.openVault, at: sessionManager.clock.bootInstant + openRetryInterval)
                return failure
            }
            sessionManager.vaultState = .open
            sessionManager.refusedOpenings = []
            sessionManager.scheduler.remove(.openVault)
            for name in sessionManager.lanes.keys { sessionManager.load(name, isNews: false) }
            for slot in sessionManager.unwritten.keys {
                if let name = AccountName(slot.account) {
                    sessionManager.note(.save(name), at: sessionManager.clock.bootInstant)
                }
            }
            sessionManager.firstOpening.fulfil(())
            sessionManager.record(.vaultOpened(keySource: sessionManager.vault.status.keySource))
            return nil
        }
    }

    private func attemptRefusal() -> BrokerError? {
        let now = clock.bootInstant
        refusedOpenings.removeAll { $0 <= now - attemptWindow }
        guard refusedOpenings.count >= attemptLimit, let first = refusedOpenings.first else { return nil }
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
            let reason = BrokerError.vaultLocked("The vault was locked. Unlock it: ringback unlock.")
            sessionManager.vaultState = .locked(reason, isAsked: true)
            sessionManager.scheduler.remove(.openVault)
            // Locked before it was ever open: whoever waits for the first opening waits no longer.
            sessionManager.firstOpening.fulfil(())
            for name in sessionManager.lanes.keys {
                sessionManager.snapshot.publish(nil, for: name)
                sessionManager.unschedule(name)
            }
            // A provider may be rotating a token at this moment: it must rest in the vault before the key goes.
            let turns = Set(sessionManager.lanes.keys).union(sessionManager.tails.keys).map { name in
                sessionManager.enqueue(name) { await $0.forget(name) }
            }
            for turn in turns { await turn.settle() }
            sessionManager.endShelved()
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
        if let lane = lanes[name], lane.isUnsaved, let session = lane.session,
            await save(session, lane.account) != nil
        {
            // It is lost if it is forgotten: it stays, out of everybody's reach.
            unwritten[lane.account.slot] = session
        }
        guard let lane = lanes[name] else { return }
        if let session = lane.session, session.isEphemeral, !session.isOfService {
            orphans.append(Closed(account: lane.account, session: session, retirement: nil))
        }
        lane.load.fulfil(())
        lanes[name]?.load = Promise()
        lanes[name]?.isLoaded = false
        lanes[name]?.loadFailure = nil
        lanes[name]?.untouchable = nil
        lanes[name]?.isUnsaved = false
        lanes[name]?.isOverdue = false
        lanes[name]?.session = nil
        lanes[name]?.error = nil
        lanes[name]?.lastRefresh = nil
        publish(name)
        unschedule(name)
        scheduler.remove(.load(name))
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
            if sessionManager.lockError != nil { sessionManager.note(.openVault, at: sessionManager.clock.bootInstant) }
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
        if let error = lanes[name]?.untouchable { throw error }
    }

    // MARK: Loading

    func load(_ name: AccountName, isNews: Bool) {
        guard let generation = lanes[name]?.generation else { return }
        enqueue(name) { sessionManager in
            guard let lane = sessionManager.lanes[name], lane.generation == generation else { return }
            await sessionManager.loadInTurn(lane, isNews: isNews)
        }
    }

    /// Loads what is not loaded, in a turn of the account's lane.
    func loadInTurn(_ lane: Lane, isNews: Bool) async {
        let name = lane.account.name
        guard isOpen, !lane.isLoaded, !takeUpService(lane, isNews: isNews) else { return }
        let found: Result<VaultEntry?, VaultError> = await read(lane.account.slot)
        guard isOpen, lanes[name]?.generation == lane.generation, lanes[name]?.isLoaded == false else { return }
        if let session = unwritten.removeValue(forKey: lane.account.slot) {
            // Newer than what the vault could be made to take.
            lanes[name]?.isUnsaved = true
            takeUp(session, name, isNews: isNews)
        } else if let closed = shelved.removeValue(forKey: lane.account.slot) {
            takeUp(closed.session, name, isNews: isNews)
        } else {
            switch found {
            case .failure(let error): noteUnread(name, error)
            case .success(let entry): take(entry, name, isNews: isNews)
            }
        }
        lanes[name]?.load.fulfil(())
        if lanes[name]?.isLoaded == true {
            post(.initialSession, name, session: lanes[name]?.session, error: lanes[name]?.error)
        }
    }

    private func takeUp(_ session: Session, _ name: AccountName, isNews: Bool) {
        noteLoaded(name)
        hold(session, name)
        if isNews { post(.signedIn, name, session: session) } else { renewProfile(name) }
    }

    private func noteLoaded(_ name: AccountName) {
        lanes[name]?.isLoaded = true
        if lanes[name]?.error == lanes[name]?.loadFailure { lanes[name]?.error = nil }
        lanes[name]?.loadFailure = nil
    }

    private func take(_ entry: VaultEntry?, _ name: AccountName, isNews: Bool) {
        guard let entry else { return noteLoaded(name) }
        do throws(SessionRecord.Failure) {
            let session = try SessionRecord.decode(entry.text, by: clock)
            lanes[name]?.isOverdue =
                entry.isInterrupted || session.tokens[.own]?.remaining(at: clock.bootInstant) == 0
            takeUp(session, name, isNews: isNews)
        } catch {
            noteLoaded(name)
            switch error {
            case .ended(let word): lanes[name]?.error = .sessionExpired(name, word: word)
            case .damaged:
                lanes[name]?.error = .vaultFailed("What the vault holds for \(name) cannot be read. Sign in again.")
            case .newer:
                let failure = BrokerError.vaultFailed(
                    "The session of \(name) was sealed by a newer version of Ringback. It was not touched.")
                lanes[name]?.untouchable = failure
                lanes[name]?.error = failure
            }
        }
    }

    private func noteUnread(_ name: AccountName, _ error: VaultError) {
        switch error {
        case .damaged, .newer:
            // Set aside, or not to be touched: there is no session to be had here, and that is known.
            noteLoaded(name)
            if case .newer = error { lanes[name]?.untouchable = BrokerError(error) }
            lanes[name]?.error = BrokerError(error)
        case .locked, .wrongPassphrase, .unwritable, .refused:
            lanes[name]?.loadFailure = BrokerError(error)
            lanes[name]?.error = BrokerError(error)
            note(.load(name), at: clock.bootInstant + loadRetryInterval)
        }
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
