internal import Secrets
internal import SessionVault

/// A wrong passphrase may be tried this often (CONTRACT section 4), in this many milliseconds.
private let attemptLimit = 5
private let attemptWindow = 60_000
/// What the vault would not tell is asked for again after this long (milliseconds).
private let loadRetryInterval = 5_000

/// The vault's doors: opening brings every session back, locking takes every one out of reach and out of memory.
extension SessionBook {
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
        await inVaultTurn { book in
            if case .open = book.vaultState { return nil }
            if case .locked(let error, isAsked: true) = book.vaultState, !isAsked { return error }
            if isAsked, let error = book.attemptRefusal() { return error }
            do throws(VaultError) {
                try await book.vault.open(passphrase: passphrase)
            } catch {
                let failure = BrokerError(opening: error)
                if isAsked {
                    book.refusedOpenings.append(book.clock.boot())
                    book.record(.vaultRefused(failure))
                }
                // A wrong passphrase does not change why the vault is locked.
                if failure != .wrongPassphrase {
                    book.vaultState = .locked(failure, isAsked: false)
                } else if case .unopened = book.vaultState {
                    book.vaultState = .locked(failure, isAsked: false)
                }
                book.firstOpening.fulfil(())
                book.note(.openVault, at: book.clock.boot() + openRetryInterval)
                return failure
            }
            book.vaultState = .open
            book.refusedOpenings = []
            book.agenda.remove(.openVault)
            for name in book.lanes.keys { book.load(name, isNews: false) }
            for slot in book.unwritten.keys {
                if let name = AccountName(slot.account) { book.note(.save(name), at: book.clock.boot()) }
            }
            book.firstOpening.fulfil(())
            book.record(.vaultOpened(keySource: book.vault.status.keySource))
            return nil
        }
    }

    private func attemptRefusal() -> BrokerError? {
        let now = clock.boot()
        refusedOpenings.removeAll { $0 <= now - attemptWindow }
        guard refusedOpenings.count >= attemptLimit, let first = refusedOpenings.first else { return nil }
        return .tooManyAttempts(retryAfter: (first + attemptWindow - now + 999) / 1_000)
    }

    /// Takes every session out of reach at once, lets changes under way save what they got, forgets everything and
    /// closes the vault. When it returns, nothing held in memory serves a session.
    func lockVault() async -> BrokerError? {
        if vault.status.keySource == "memory" {
            return .conflict(
                "The sessions are in memory only: locking would lose them. Sign out, or choose a key_source.")
        }
        return await inVaultTurn { book in
            if case .locked(_, isAsked: true) = book.vaultState { return nil }
            let reason = BrokerError.vaultLocked("The vault was locked. Unlock it: ringback unlock.")
            book.vaultState = .locked(reason, isAsked: true)
            book.agenda.remove(.openVault)
            // Locked before it was ever open: whoever waits for the first opening waits no longer.
            book.firstOpening.fulfil(())
            for name in book.lanes.keys {
                book.board.publish(nil, for: name)
                book.unschedule(name)
            }
            // A provider may be rotating a token at this moment: it must rest in the vault before the key goes.
            let turns = Set(book.lanes.keys).union(book.tails.keys).map { name in
                book.enqueue(name) { await $0.forget(name) }
            }
            for turn in turns { await turn.settle() }
            book.endShelved()
            do throws(VaultError) {
                try await book.vault.close()
            } catch {
                return BrokerError(error)
            }
            book.record(.vaultLocked)
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
        agenda.remove(.load(name))
    }

    /// Puts the vault's key elsewhere.
    func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async -> BrokerError? {
        await inVaultTurn { book in
            if case .locked(let error, isAsked: true) = book.vaultState { return error }
            let former = book.vault.status.keySource
            do throws(VaultError) {
                // One that is closed because the configuration names another place already is the vault's to judge: this
                // is how the key gets there.
                try await book.vault.rekey(to: choice, passphrase: passphrase)
            } catch {
                // What was opened for the move alone does not stay open without it.
                if book.lockError != nil { try? await book.vault.close() }
                return BrokerError(error)
            }
            book.record(.vaultRekeyed(from: former, to: book.vault.status.keySource))
            if book.lockError != nil { book.note(.openVault, at: book.clock.boot()) }
            return nil
        }
    }

    private func inVaultTurn(
        _ body: @escaping @Sendable (isolated SessionBook) async -> BrokerError?
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
        enqueue(name) { book in
            guard let lane = book.lanes[name], lane.generation == generation else { return }
            await book.loadInTurn(lane, isNews: isNews)
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
                entry.isInterrupted || session.tokens[.own]?.remaining(at: clock.boot()) == 0
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
            note(.load(name), at: clock.boot() + loadRetryInterval)
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

/// A locked vault whose source needs no person is tried again after this long (milliseconds).
let openRetryInterval = 15_000
