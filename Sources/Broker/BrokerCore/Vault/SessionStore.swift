internal import RingbackBase
internal import SessionVault

/// The sessions in the vault, each as the record in its account's slot; ``SessionManager`` decides when to write.
struct SessionStore: Sendable {
    let vault: any Vault
    let clock: BrokerClock

    private static let batch = 128

    /// In the order of `accounts`. Entries are decoded while the next ones are read.
    func load(_ accounts: [(name: AccountName, slot: VaultSlot)], with work: Work) async -> [LaneState.Loaded] {
        var batches: [Promise<[LaneState.Loaded]>] = []
        for start in stride(from: 0, to: accounts.count, by: SessionStore.batch) {
            let part = accounts[start..<min(start + SessionStore.batch, accounts.count)]
            let found = await vault.load(part.map(\.slot))
            batches.append(
                work.start { [clock] in zip(part, found).map { LaneState.Loaded($1, of: $0.name, by: clock) } })
        }
        var loaded: [LaneState.Loaded] = []
        for batch in batches {
            await batch.settle()
            loaded += batch.value ?? []
        }
        return loaded
    }

    /// Writes a session. With `isReplacing` the vault keeps the former one until its provider has been told, and its
    /// entry is returned.
    @discardableResult
    func write(
        _ session: Session, in slot: VaultSlot, as write: VaultWrite = .result, isReplacing: Bool = false,
        endingAll: Bool = false
    ) async throws(BrokerError) -> RetiredEntry? {
        let text = SessionRecord.encode(
            session, bootID: clock.bootID, machineID: clock.machineID, endsAll: endingAll)
        do throws(VaultError) {
            if isReplacing { return try await vault.replace(text, in: slot) }
            try await vault.store(text, in: slot, as: write)
            return nil
        } catch {
            guard case .refused = error, session.tokens.count > 1 else { throw BrokerError(error) }
        }
        // The record is too large. It is stored without downscoped tokens: they can be requested again, the refresh
        // token cannot.
        return try await self.write(
            session.withoutDownscopedTokens, in: slot, as: write, isReplacing: isReplacing, endingAll: endingAll)
    }

    /// Keeps a session that has ended until its provider has been told. Returns the vault's identifier of it.
    func keep(ended session: Session, of slot: VaultSlot) async throws(BrokerError) -> String {
        let text = SessionRecord.encode(session.withoutDownscopedTokens, bootID: clock.bootID)
        return try await BrokerError.mapping { () throws(VaultError) in
            try await vault.keep(text, retiredFrom: slot).id
        }
    }

    /// Marks that the provider is about to be asked, and reserves room: a rotated refresh token must not be lost for
    /// lack of it. With `isNeeded` false, since the provider is known not to rotate, a failure is ignored.
    func announce(
        _ slot: VaultSlot, presenting token: Secret?, accessTokenLeft: Duration?, isNeeded: Bool
    ) async throws(BrokerError) -> Announcement {
        do throws(VaultError) {
            return try await vault.announce(slot, presenting: token, accessTokenLeft: accessTokenLeft)
        } catch {
            switch error {
            case .unreachable(.databaseAway), .unreachable(.databaseRefused), .unwritable:
                if !isNeeded { return .granted(.unleased) }
            default: break
            }
            guard case .unwritable(let reason) = error else { throw BrokerError(error) }
            throw .vaultFailed(.session(.noRoom(cause: reason)))
        }
    }

    /// The refresh tokens of a vault's text, the newest first; none if it is no session.
    func refreshTokens(in text: Secret) -> [Secret] {
        (try? SessionRecord.decode(text, by: clock))?.refreshTokens ?? []
    }

    /// Writes that the provider has ended the session, or empties the slot. Another host's other session stays.
    func recordEnd(_ code: String?, _ message: String?, hasMoved: Bool, in slot: VaultSlot) async {
        do throws(VaultError) {
            let text = SessionRecord.ended(code, message: message, hasMoved: hasMoved)
            try await vault.store(text, in: slot, as: .end)
        } catch {
            if case .unreachable = error { return }
            try? await vault.remove(slot)
        }
    }

    /// Empties a slot. With `isKept` the vault keeps the session until its provider has been told, and its identifier
    /// is returned.
    func empty(_ slot: VaultSlot, isKept: Bool) async throws(BrokerError) -> String? {
        do throws(VaultError) {
            if isKept { return try await vault.retire(slot)?.id }
            try await vault.remove(slot)
        } catch {
            // The vault has set a damaged record aside, so that the slot counts as empty.
            guard case .damaged = error else { throw BrokerError(error) }
        }
        return nil
    }
}

extension Session {
    fileprivate var withoutDownscopedTokens: Session {
        var session = self
        session.tokens = tokens.filter { $0.key == .own }
        return session
    }
}

/// Writes sessions to the vault, in a turn of the account's lane.
extension SessionManager {
    /// Writes to the vault. If that fails, memory holds the session, and the write is repeated. Returns the error.
    func save(
        _ session: Session, _ account: Account, as kind: VaultWrite = .result, endingAll: Bool = false
    ) async -> BrokerError? {
        guard !session.isEphemeral else {
            // The lane may have been set aside. Then the copy that is kept there is updated.
            detached.update(session, of: account)
            return nil
        }
        do throws(BrokerError) {
            try await write(session, in: account.slot, as: kind, endingAll: endingAll)
            return nil
        } catch {
            if lanes[account.name]?.account.slot != account.slot || lanes[account.name]?.state.isLoaded != true {
                // The lane was set aside meanwhile. One that has taken its place takes the session up from here.
                detached.keep(unwritten: session, in: account.slot)
                schedule.set(.save(account.name), at: clock.bootInstant + Schedule.saveRetryInterval)
            }
            return error
        }
    }

    /// If the session replaces another one, the vault keeps that one until its provider has been told.
    func write(
        _ session: Session, in slot: VaultSlot, as kind: VaultWrite = .result, endingAll: Bool = false
    ) async throws(BrokerError) {
        let isReplacing = detached.replaced(in: slot).holdsStored
        var retired: RetiredEntry?
        do throws(BrokerError) {
            retired = try await store.write(
                session, in: slot, as: kind, isReplacing: isReplacing, endingAll: endingAll)
        } catch {
            guard isReplacing, isOpen else { throw error }
            // Keeping the former record needs more room than storing the session alone. The session matters more.
            try await store.write(session, in: slot, as: kind, endingAll: endingAll)
        }
        var retirement: String?
        if let retired {
            // A write that failed may have taken effect: the next one retires the session in use, which must not be
            // ended.
            if let former = try? SessionRecord.decode(retired.text, by: clock),
                detached.replaced(in: slot).isStored(former, with: tools)
            {
                retirement = retired.id
            } else {
                try? await vault.discard(retired.id)
            }
        }
        detached.settle(slot, retirement: retirement)
    }
}
