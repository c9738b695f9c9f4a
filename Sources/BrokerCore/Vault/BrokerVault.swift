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

    /// Locks the vault: sessions cannot be read, none is left in memory, and the vault's key is forgotten.
    ///
    /// - Throws: `conflict` if the sessions are in memory only.
    public func lockVault() async throws(BrokerError) {
        if let error = await sessionManager.lockVault() { throw error }
        await revocations.forget()
        for closed in await sessionManager.takeOrphans() { work.start { await revocations.tellOnce(closed) } }
    }

    /// Opens the vault. The passphrase is for a key source that asks for one.
    ///
    /// - Parameter pid: of the process that asks. After five failed attempts in a minute it gets `tooManyAttempts`.
    public func unlockVault(passphrase: Secret?, by pid: Int32 = 0) async throws(BrokerError) {
        if let error = await sessionManager.openVault(passphrase: passphrase, isAsked: true, by: pid) { throw error }
    }

    /// Moves the vault's key to another key source. The passphrase is for the new one.
    public func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async throws(BrokerError) {
        if let error = await sessionManager.rekeyVault(to: choice, passphrase: passphrase) { throw error }
    }

    /// How many signed-out sessions have not been revoked at their providers yet, by account.
    public func pendingRevocations() async -> [AccountName: Int] { await revocations.counts() }
}
