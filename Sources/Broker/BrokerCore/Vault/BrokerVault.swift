public import Secrets
internal import SessionVault

/// The operations on the vault that a user asks for.
extension Broker {
    /// Returns when the first attempt to open the vault has ended, successfully or not.
    public func vaultSettled() async { _ = await sessionManager.firstOpening.wait() }

    /// The same with a bound, since a keyring may prompt the user first.
    public func vaultSettled(atMost bound: Duration) async throws(BrokerError) {
        guard await sessionManager.firstOpening.wait(atMost: bound) != nil else { throw .endOfWait }
    }

    /// Waits until the first attempt to open the vault has ended and, if it succeeded, the accounts' entries were read:
    /// only then it is known whether the vault is locked and who is signed in. For the start and a reload; requests do
    /// not wait.
    ///
    /// - Parameter bound: the longest wait. A locked keyring may take longer.
    public func accountsSettled(atMost bound: Duration) async {
        let end = ContinuousClock.now + bound
        guard await sessionManager.firstOpening.wait(atMost: bound) != nil else { return }
        for name in await sessionManager.unloaded {
            try? await sessionManager.ready(name, atMost: max(end - .now, .zero))
        }
    }

    /// If the vault is being opened, waits a second at most until its sessions can be used. A caller that is told that
    /// the vault is open may ask for a session at once.
    public func openingSettled() async {
        _ = await sessionManager.vaultTurn?.wait(atMost: .seconds(1))
    }

    /// Locks the vault: sessions cannot be read, none is left in memory, and the vault's key is forgotten.
    ///
    /// - Throws: `conflict` if the sessions are in memory only.
    public func lockVault() async throws(BrokerError) {
        if let error = await sessionManager.lockVault() { throw error }
        await revocations.forget()
        for closed in await sessionManager.takeOrphans() { work.start { await revocations.tellOnce(closed) } }
    }

    /// Opens the vault. The passphrase is for a key source that asks for one. Attempts run one at a time: callers that
    /// gave fewer wrong passphrases in the last minute go first, and of two with as many the one whose session is
    /// older.
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
