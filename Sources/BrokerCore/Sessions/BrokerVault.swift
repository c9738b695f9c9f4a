public import Secrets
public import SessionVault

/// The vault, as a person handles it.
extension Broker {
    /// Returns when the first attempt to open the vault has ended, well or not.
    public func vaultSettled() async { _ = await sessionManager.firstOpening.wait() }

    /// The same with a bound, since a keyring may put its question first.
    public func vaultSettled(atMost bound: Duration) async throws(BrokerError) {
        guard await sessionManager.firstOpening.wait(atMost: bound) != nil else {
            throw Task.isCancelled ? .cancelled : .timedOut
        }
    }

    /// Takes every session out of reach and out of memory, and forgets the vault's key.
    public func lockVault() async throws(BrokerError) {
        if let error = await sessionManager.lockVault() { throw error }
        await revocations.forget()
        for closed in await sessionManager.takeOrphans() { work.start { await revocations.tellOnce(closed) } }
    }

    /// Opens the vault. The passphrase is for a source that asks for one.
    ///
    /// - Parameter pid: of the process that asks. One that has given wrong passphrases waits for a minute.
    public func unlockVault(passphrase: Secret?, by pid: Int32 = 0) async throws(BrokerError) {
        if let error = await sessionManager.openVault(passphrase: passphrase, isAsked: true, by: pid) { throw error }
    }

    /// Moves the vault's key to another source. The passphrase is for the new one.
    public func rekeyVault(to choice: KeySourceChoice, passphrase: Secret?) async throws(BrokerError) {
        if let error = await sessionManager.rekeyVault(to: choice, passphrase: passphrase) { throw error }
    }

    /// Signed-out sessions that their providers have yet to hear of, by account.
    public func pendingRevocations() async -> [AccountName: Int] { await revocations.counts() }
}
