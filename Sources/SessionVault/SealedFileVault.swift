// Sessions in sealed files. The order of calls is the whole idea, and holds for a kill at any of them:
//
// - store: the new text is written beside the old one, synced, and takes its name. Before the rename the slot holds the
//   old text, after it the new one. An announced store that was killed, or failed, with its file whole is finished at
//   the next announcement or opening: what is in it may be the only token that the provider still takes.
// - announce: the file for that store is made in advance, with room; that it exists is the mark. The rename of store
//   takes the mark away in the same step as it installs the text.
// - settle, remove, discard: one file's end. remove lets the session go before its mark.
// - retire: one rename.
// - open: `vault.key` is made before anything is sealed, the source's key before `vault.key`.
// - rekey: the new source has its key, then `vault.key` is replaced, then the old source's key goes. A note of both is
//   there meanwhile, and with the first key too.

internal import Cryptography
public import Secrets
internal import Synchronization

/// The durable vault: one sealed file per slot under a directory of ours, and the key to them in `vault.key`, wrapped by
/// a ``KeySource``.
///
/// Whoever makes one holds the ``StateLock`` of the directory as long as it is used.
public actor SealedFileVault: Vault {
    enum State {
        case closed
        case open(OpenVault)
        /// Nothing is written: it was chosen so, or there is no place to write.
        case memory(MemoryVault)
    }

    struct OpenVault {
        let key: SealingKey
        let directory: SyncedDirectory
        var keyFile: VaultKeyFile
        var nextRetired: Int
    }

    static let folder = "vault"
    private static let unopened = "The vault has not been opened yet."
    static let needsPassphrase = "The vault is locked with a passphrase."

    let path: String
    let choice: KeySourceChoice
    let sources: [any KeySource]
    var state = State.closed
    private let snapshot: Mutex<VaultStatus>
    private let queue = VaultQueue()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe queue.asUnownedSerialExecutor() }
    public nonisolated var status: VaultStatus { snapshot.withLock { $0 } }

    /// A closed vault. Nothing is read or written before ``open(passphrase:)``.
    ///
    /// - Parameters:
    ///   - directory: the state directory: it exists, is ours and closed to others.
    ///   - sources: at most one per choice. One that is missing is as if it were absent.
    ///   - choice: what the configuration says.
    public init(directory: String, sources: [any KeySource], choice: KeySourceChoice = .auto) {
        path = directory
        self.sources = sources
        self.choice = choice
        snapshot = Mutex(
            VaultStatus(
                kind: choice == .memory ? "memory" : "sealed-file", isLocked: true,
                reason: SealedFileVault.unopened,
                keySource: choice == .auto ? "undecided" : choice.rawValue,
                protects: "nothing is readable until it is opened"))
    }

    public func open(passphrase: Secret?) async throws(VaultError) {
        guard case .closed = state else { return }
        do throws(VaultError) {
            try await unlock(passphrase)
        } catch {
            note(error)
            throw error
        }
    }

    public func close() async throws(VaultError) {
        switch state {
        case .closed: return
        case .memory(let memory): try await memory.close()
        case .open:
            // The key's bytes are zeroed with its last copy, which is this one.
            state = .closed
            snapshot.withLock { status in
                status.isLocked = true
                status.reason = "The vault was locked."
            }
        }
    }

    // MARK: What status says

    func show(_ keyFile: VaultKeyFile) {
        let protects = source(keyFile.source)?.protects ?? ""
        snapshot.withLock {
            $0 = VaultStatus(
                kind: "sealed-file", isLocked: false, keySource: keyFile.source.rawValue, protects: protects)
            $0.otherKeySource = other(than: keyFile.source)
        }
    }

    func becomeMemory(because reason: String?) {
        let memory = MemoryVault()
        state = .memory(memory)
        var status = memory.status
        if let reason { status.protects += ". No vault could be made: \(reason)" }
        snapshot.withLock { [status] in $0 = status }
    }

    /// The source is known although its key is not.
    func show(lockedWith source: KeySourceChoice) {
        let protects = self.source(source)?.protects ?? ""
        snapshot.withLock { status in
            status.keySource = source.rawValue
            status.protects = protects
            status.needsNewPassphrase = false
            status.otherKeySource = other(than: source)
        }
    }

    /// There is no key yet, and to make it a passphrase has to be chosen.
    func showNewPassphraseNeeded() { snapshot.withLock { $0.needsNewPassphrase = true } }

    private nonisolated func other(than source: KeySourceChoice) -> String? {
        choice == .auto || choice == source ? nil : choice.rawValue
    }

    private func note(_ error: VaultError) {
        let reason =
            switch error {
            // Whoever gave it is told. Why the vault is locked has not changed.
            case .wrongPassphrase: status.reason == Self.unopened ? Self.needsPassphrase : status.reason
            case .locked(let reason), .unwritable(let reason), .damaged(let reason), .newer(let reason),
                .refused(let reason):
                reason
            }
        snapshot.withLock { status in
            status.isLocked = true
            status.reason = reason
        }
    }

    // MARK: Helpers

    func source(_ choice: KeySourceChoice) -> (any KeySource)? { sources.first { $0.choice == choice } }

    /// The open vault, for what needs its key.
    func opened() throws(VaultError) -> OpenVault {
        guard case .open(let vault) = state else {
            throw .locked(reason: status.reason ?? "The vault is locked.")
        }
        return vault
    }

    var memory: MemoryVault? {
        if case .memory(let memory) = state { memory } else { nil }
    }
}

extension VaultError {
    init(_ failure: FileFailure) { self = .unwritable(reason: failure.reason) }

    /// libcrypto does not work: no memory.
    init(_ failure: CryptographyError) {
        self = .refused(reason: "The cryptography library failed (out of memory?); try again.")
    }
}
