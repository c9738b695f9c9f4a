// The sealed-file vault. Its guarantees depend on the order of system calls, and hold if the process is killed at any
// of them:
//
// - store: the new text is written to another file, synced, and renamed over the old one. Before the rename the slot
//   has the old text, afterwards the new one. If an announced store is interrupted or fails after its file was
//   complete, the next announcement or opening finishes it: the file may contain the only refresh token that the
//   provider still accepts.
// - announce: creates the file for the coming store with reserved space. The existence of this file is the mark of the
//   announcement. The rename of the store removes the mark in the same step.
// - settle, remove, discard: delete a file. remove deletes the session before the mark.
// - retire: one rename.
// - replace: a copy of the old file is written as a retired file, then the new text is stored. If a retired file has
//   the same bytes as the slot's file, the store did not happen and the session in it has not ended. Such a copy is
//   never listed, and it is removed before the slot's file changes.
// - open: `vault.key` is made before anything is sealed, and the source's key before `vault.key`.
// - rekey: the new source makes its key, then `vault.key` is replaced, then the old source's key is removed. Until then
//   a note names both keys. There is such a note for the first key too.

internal import Cryptography
public import Secrets
internal import Synchronization

/// A vault on disk: one sealed file for each slot, and `vault.key` with the data key, wrapped by a key of a
/// ``KeySource``.
///
/// The caller must hold the directory's ``StateLock`` as long as the vault is used.
public actor SealedFileVault: Vault {
    enum State {
        case closed
        case open(OpenVault)
        /// Nothing is written to disk, because of the configuration or because nothing can be written.
        case memory(MemoryVault)
    }

    struct OpenVault {
        let key: SealingKey
        let directory: SyncedDirectory
        var keyFile: VaultKeyFile
        var nextRetired: Int
        /// Retired files whose session is still in its slot and which could not be removed yet, by the name of the
        /// slot's file.
        var copies: [String: String] = [:]
    }

    static let folder = "vault"

    let path: String
    let choice: KeySourceChoice
    let sources: [any KeySource]
    var state = State.closed
    private let snapshot: Mutex<VaultStatus>
    private let queue = VaultQueue()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe queue.asUnownedSerialExecutor() }
    public nonisolated var status: VaultStatus { snapshot.withLock { $0 } }

    /// Creates a closed vault. Nothing is read or written before ``open(passphrase:)``.
    ///
    /// - Parameters:
    ///   - directory: the state directory. It exists, belongs to the user and is closed to others.
    ///   - sources: at most one for each choice. A source that is not in the list is not available.
    ///   - choice: the configured source.
    public init(directory: String, sources: [any KeySource], choice: KeySourceChoice = .auto) {
        path = directory
        self.sources = sources
        self.choice = choice
        snapshot = Mutex(
            VaultStatus(
                kind: choice == .memory ? .memory : .sealedFile, isLocked: true,
                reason: .notOpened, keySource: choice == .auto ? nil : choice, protection: .notOpened))
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
            // The key is zeroed when its last reference is released, which is this one.
            state = .closed
            snapshot.withLock { status in
                status.isLocked = true
                status.reason = .lockedByUser
            }
        }
    }

    // MARK: Status

    func show(_ keyFile: VaultKeyFile) {
        let protection = source(keyFile.source)?.protection ?? .unknown
        snapshot.withLock {
            $0 = VaultStatus(
                kind: .sealedFile, isLocked: false, keySource: keyFile.source, protection: protection)
            $0.otherKeySource = other(than: keyFile.source)
        }
    }

    func becomeMemory(because reason: VaultReason?) {
        let memory = MemoryVault()
        state = .memory(memory)
        var status = memory.status
        status.protection = .memory(reason: reason)
        snapshot.withLock { [status] in $0 = status }
    }

    /// Reports the recorded source although its key is not available.
    func show(lockedWith source: KeySourceChoice) {
        let protection = self.source(source)?.protection ?? .unknown
        snapshot.withLock { status in
            status.keySource = source
            status.protection = protection
            status.needsNewPassphrase = false
            status.otherKeySource = other(than: source)
        }
    }

    /// Reports that there is no key yet and that the user must choose a passphrase first.
    func showNewPassphraseNeeded() { snapshot.withLock { $0.needsNewPassphrase = true } }

    private nonisolated func other(than source: KeySourceChoice) -> KeySourceChoice? {
        choice == .auto || choice == source ? nil : choice
    }

    private func note(_ error: VaultError) {
        let (reason, obstacle): (VaultReason?, VaultObstacle?) =
            switch error {
            // The error is only returned to the caller. The reason why the vault is locked stays the same.
            case .wrongPassphrase:
                (status.reason == .notOpened ? .needsPassphrase : status.reason, status.obstacle)
            case .locked(let reason, let obstacle), .refused(let reason, let obstacle): (reason, obstacle)
            case .unwritable(let reason), .damaged(let reason), .newer(let reason), .unreachable(let reason):
                (reason, nil)
            }
        snapshot.withLock { status in
            status.isLocked = true
            status.reason = reason
            status.obstacle = obstacle
        }
    }

    // MARK: Helpers

    func source(_ choice: KeySourceChoice) -> (any KeySource)? { sources.first { $0.choice == choice } }

    /// The open vault with its key. Throws `locked` if it is not open.
    func opened() throws(VaultError) -> OpenVault {
        guard case .open(let vault) = state else {
            throw .locked(status.reason ?? .locked, obstacle: status.obstacle)
        }
        return vault
    }

    var memory: MemoryVault? {
        if case .memory(let memory) = state { memory } else { nil }
    }
}

extension VaultError {
    init(_ failure: FileFailure) { self = .unwritable(.file(failure)) }

    init(_ failure: CryptographyError) { self = .refused(.cryptography) }
}
