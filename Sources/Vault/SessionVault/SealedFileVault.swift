internal import Cryptography
internal import Dispatch
internal import Glibc
public import RingbackBase
internal import Synchronization

// The sealed-file vault. Its guarantees depend on the order of system calls, and hold if the process is killed at any:
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

/// A vault on disk: one sealed file for each slot, and `vault.key` with the data key, wrapped by a key of a
/// ``KeySource``. The caller must hold the directory's ``StateLock`` as long as the vault is used.
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
        /// Retired files whose session is still in its slot and which could not be removed yet, by the slot's file.
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

    /// Nothing is read or written before ``open(passphrase:)``. `directory`, the state directory, exists, belongs to
    /// the user and is closed to others. `sources` has at most one for each choice.
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

    func show(_ keyFile: VaultKeyFile) {
        let protection = source(keyFile.source)?.protection ?? .unknown
        snapshot.withLock {
            $0 = VaultStatus(kind: .sealedFile, isLocked: false, keySource: keyFile.source, protection: protection)
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

    private nonisolated func other(than source: KeySourceChoice) -> KeySourceChoice? {
        choice == .auto || choice == source ? nil : choice
    }

    private func note(_ error: VaultError) {
        snapshot.withLock { status in
            status.isLocked = true
            // A wrong passphrase is only returned to the caller. The reason why the vault is locked stays the same.
            guard let cause = error.cause else {
                if status.reason == .notOpened { status.reason = .needsPassphrase }
                return
            }
            status.reason = cause.reason
            status.obstacle = cause.obstacle
        }
    }

    func source(_ choice: KeySourceChoice) -> (any KeySource)? { sources.first { $0.choice == choice } }

    /// Throws `locked` if the vault is not open.
    func opened() throws(VaultError) -> OpenVault {
        guard case .open(let vault) = state else { throw .locked(status.reason ?? .locked, obstacle: status.obstacle) }
        return vault
    }

    var memory: MemoryVault? { if case .memory(let memory) = state { memory } else { nil } }
}

extension VaultError {
    init(_ failure: FileFailure) { self = .unwritable(.file(failure)) }

    static func mapping<Value>(_ body: () throws(CryptographyError) -> Value) throws(VaultError) -> Value {
        do throws(CryptographyError) { return try body() } catch { throw .refused(.cryptography) }
    }
}

extension SealedFileVault {
    /// Opens the vault with a key that was verified against `vault.key`, and cleans up after a killed process.
    func enter(_ directory: SyncedDirectory, _ keyFile: VaultKeyFile, _ key: SealingKey) async throws(VaultError) {
        let opened = try onDisk { () throws(FileFailure) in try directory.subdirectory(Self.folder, isMade: true) }
        guard let folder = opened else { throw .unwritable(.folderNotOpened(path: folderPath)) }
        let names = try onDisk { () throws(FileFailure) in try folder.names() }
        try refuseForeign(names, folder, key)
        _ = try? directory.remove(VaultKeyFile.name + SyncedDirectory.temporarySuffix)
        for name in names where SlotFiles.isTemporary(name) { _ = try? folder.remove(name) }
        for name in names {
            guard let live = SlotFiles.live(ofNext: name) else { continue }
            finishStore(live, next: name, folder, key)
        }
        let copies = removeCopies(names, folder)
        // A rename by a killed process may not be durable yet. From now on its result is used, so sync it.
        try? folder.sync()
        let last = names.compactMap(SlotFiles.retiredNumber).max() ?? 0
        state = .open(OpenVault(key: key, directory: folder, keyFile: keyFile, nextRetired: last + 1, copies: copies))
        show(keyFile)
        await finishKeyChanges(directory, keyFile)
    }

    /// Removes the retired copies of replacements that were interrupted before the new text was in the slot. Returns
    /// those that could not be removed, by the slot's file.
    private func removeCopies(_ names: [String], _ folder: SyncedDirectory) -> [String: String] {
        var left: [String: String] = [:]
        for name in names {
            guard let live = SlotFiles.live(ofRetired: name) else { continue }
            do throws(FileFailure) {
                if try isCopy(name, of: live, folder) { try folder.remove(name) }
            } catch {
                left[live] = name
            }
        }
        return left
    }

    /// True if both files have the same bytes. Two separately sealed files never have, because each has its own nonce.
    func isCopy(_ retired: String, of live: String, _ folder: SyncedDirectory) throws(FileFailure) -> Bool {
        guard let bytes = try folder.read(retired, atMost: SealedFile.maximumSize) else { return false }
        return try folder.read(live, atMost: SealedFile.maximumSize) == bytes
    }

    /// If the key of `vault.key` opens none of the files, it is the wrong one: storing new sessions under it would make
    /// recovery harder.
    private func refuseForeign(_ names: [String], _ folder: SyncedDirectory, _ key: SealingKey) throws(VaultError) {
        var foreign = 0
        for name in names where SlotFiles.isPrecious(name) {
            guard let start = try? folder.read(name, atMost: SealedFile.checkEnd),
                let check = SealedFile.check(of: start)
            else { continue }
            if check.elementsEqual(key.check) { return }
            // The check value is not authenticated and may be the only damaged part.
            if let bytes = try? folder.read(name, atMost: SealedFile.maximumSize),
                (try? SealedFile.read(bytes, .init(SlotFiles.kind(ofLive: name) ?? .session), key: key)) != nil
            {
                return
            }
            foreign += 1
        }
        guard foreign == 0 else {
            throw .locked(.foreignSessions(path: keyFilePath, count: foreign, folder: folder.path))
        }
    }

    /// Finishes a store that was interrupted or failed after its last byte was written: the file may contain the only
    /// refresh token that the provider still accepts. An incomplete file only marks an announcement.
    func finishStore(_ live: String, next: String, _ folder: SyncedDirectory, _ key: SealingKey) {
        guard let bytes = try? folder.read(next, atMost: SealedFile.maximumSize),
            let kind = SlotFiles.kind(ofLive: live),
            let file = try? SealedFile.read(bytes, .init(kind), key: key),
            let slot = SlotFiles.slot(file.header, kind), let files = try? SlotFiles(slot), files.live == live
        else { return }
        guard (try? folder.syncFile(next)) != nil, (try? folder.move(next, to: live)) != nil else { return }
        _ = try? folder.sync()
    }
}

// The key source is chosen once, when there is neither a `vault.key` nor any sealed file. From then on only the
// recorded source is used. Choosing another source or making a new key would silently lose every session.

extension SealedFileVault {
    func unlock(_ passphrase: Secret?) async throws(VaultError) {
        if choice == .memory { return becomeMemory(because: nil) }
        let directory = try onDisk { () throws(FileFailure) in try SyncedDirectory(opening: path) }
        let bytes = try onDisk { () throws(FileFailure) in
            try directory.read(VaultKeyFile.name, atMost: VaultKeyFile.maximumSize)
        }
        guard let bytes else { return try await openFirst(directory, passphrase) }
        let keyFile = try parse(bytes)
        show(lockedWith: keyFile.source)
        guard choice == .auto || choice == keyFile.source else { throw mismatch(keyFile.source) }
        let key = try await dataKey(keyFile, bytes, passphrase)
        try await enter(directory, keyFile, key)
    }

    func parse(_ bytes: [UInt8]) throws(VaultError) -> VaultKeyFile {
        do throws(SealedFile.Failure) { return try VaultKeyFile(parsing: bytes) } catch { throw refusal(error) }
    }

    var keyFilePath: String { "\(path)/\(VaultKeyFile.name)" }
    var folderPath: String { "\(path)/\(Self.folder)" }

    private func refusal(_ failure: SealedFile.Failure, by source: KeySourceChoice? = nil) -> VaultError {
        switch (failure, source) {
        case (.newer(let version), _): .newer(.newer(path: keyFilePath, version: version))
        case (.damaged(let damage), _): .locked(.damagedKeyFile(path: keyFilePath, folder: folderPath, damage))
        case (.foreign, .passphrase?): .wrongPassphrase
        case (.foreign, let source?): .locked(.otherKey(source, path: keyFilePath, folder: folderPath))
        case (.foreign, nil), (.cryptography, _): .locked(.notUnwrapped)
        }
    }

    /// The key is kept by another source than the configured one.
    func mismatch(_ recorded: KeySourceChoice) -> VaultError {
        .locked(
            .keySourceDiffers(recorded: recorded, configured: choice),
            obstacle: .keySourceDiffers(recorded: recorded, configured: choice))
    }

    func dataKey(
        _ keyFile: VaultKeyFile, _ bytes: [UInt8], _ passphrase: Secret?
    ) async throws(VaultError) -> SealingKey {
        guard let source = source(keyFile.source) else { throw .locked(.keySourceMissing(keyFile.source)) }
        let wrappingKey: Secret
        do throws(KeySourceError) {
            wrappingKey = try await source.fetch(keyFile.keyID, parameters: keyFile.parameters, passphrase: passphrase)
        } catch {
            throw locked(keyFile.source, error)
        }
        do throws(SealedFile.Failure) {
            return try VaultKeyFile.open(bytes, with: wrappingKey)
        } catch {
            throw refusal(error, by: keyFile.source)
        }
    }

    func locked(_ source: KeySourceChoice, _ error: KeySourceError) -> VaultError {
        switch error {
        case .locked(let reason, let obstacle): .locked(.keptBy(source, reason), obstacle: obstacle)
        case .absent(let reason), .failed(let reason): .locked(.keptBy(source, reason))
        case .needsPassphrase: .locked(.needsPassphrase)
        }
    }

    private func openFirst(_ directory: SyncedDirectory, _ passphrase: Secret?) async throws(VaultError) {
        let folder = try onDisk { () throws(FileFailure) in try directory.subdirectory(Self.folder, isMade: false) }
        let names = try onDisk { () throws(FileFailure) in try folder?.names() ?? [] }
        let count = names.count(where: SlotFiles.isPrecious)
        guard count == 0 else { throw .locked(.keyFileMissing(path: keyFilePath, count: count, folder: folderPath)) }
        let decided = await decide(choice)
        if choice == .auto, source(decided) == nil { return becomeMemory(because: .noKeyDirectory) }
        // The user must choose a passphrase first.
        if decided == .passphrase { snapshot.withLock { $0.needsNewPassphrase = true } }
        do throws(VaultError) {
            try await create(directory, decided, passphrase)
        } catch {
            // Only if no source was chosen yet because nothing can be written. A source that exists but fails is not
            // skipped.
            guard choice == .auto, case .unwritable(let reason) = error else { throw error }
            // If the disk is full or faulty at the moment, opening is tried again later.
            guard await !isPlace(directory, for: decided) else { throw error }
            becomeMemory(because: reason)
        }
    }

    /// True if the vault and its key can be stored here, or could be once the disk works again.
    private func isPlace(_ directory: SyncedDirectory, for choice: KeySourceChoice) async -> Bool {
        do throws(FileFailure) {
            _ = try directory.subdirectory(Self.folder, isMade: true)
        } catch {
            return [ENOSPC, EDQUOT, EIO].contains(error.code)
        }
        return await source(choice)?.canHoldNewKey() ?? false
    }

    /// The source that `auto` selects now.
    private func decide(_ choice: KeySourceChoice) async -> KeySourceChoice {
        guard choice == .auto else { return choice }
        for candidate in [KeySourceChoice.systemdCredential, .secretService] {
            if let source = source(candidate), await source.canHoldNewKey() { return candidate }
        }
        return .keyFile
    }

    private func create(
        _ directory: SyncedDirectory, _ choice: KeySourceChoice, _ passphrase: Secret?
    ) async throws(VaultError) {
        let dataKey = try VaultError.mapping { () throws(CryptographyError) in try SealingKey.random() }
        // The folder is created first. If that fails, no key is made in the source.
        _ = try onDisk { () throws(FileFailure) in try directory.subdirectory(Self.folder, isMade: true) }
        let written = try await writeKeyFile(directory, choice, dataKey, passphrase, replacing: nil)
        try await enter(directory, written.keyFile, dataKey)
    }

    /// Makes a wrapping key in the source and writes `vault.key` with it; removes the key again if that fails. Also
    /// returns the name of the note about the change, which stays until the old key is removed.
    func writeKeyFile(
        _ directory: SyncedDirectory, _ choice: KeySourceChoice, _ dataKey: SealingKey, _ passphrase: Secret?,
        replacing old: VaultKeyFile?
    ) async throws(VaultError) -> (keyFile: VaultKeyFile, note: String) {
        guard let source = source(choice) else { throw .locked(.noSuchKeeper(choice)) }
        guard choice != .passphrase || passphrase?.isEmpty != true else { throw .refused(.emptyPassphrase) }
        var keyFile = VaultKeyFile(source: choice, keyID: VaultKeyFile.newKeyID(), parameters: JSONObject())
        let change = KeyChange(made: keyFile, replaced: old)
        let note = try onDisk { () throws(FileFailure) in try change.write(in: directory) }
        let made: MadeKey
        do throws(KeySourceError) {
            made = try await source.create(keyFile.keyID, passphrase: passphrase)
        } catch {
            await unmake(keyFile, at: source, error, note, directory)
            throw refusal(choice, error)
        }
        keyFile.parameters = made.parameters
        do throws(VaultError) {
            try write(keyFile, dataKey, made.key, directory)
        } catch {
            let isOther = !mayBeWritten(keyFile, directory)
            if isOther, await source.remove(keyFile.keyID, parameters: made.parameters) { forget(note, directory) }
            throw error
        }
        return (keyFile, note)
    }

    /// Removes a key that the source may have stored before it failed. After other errors than `failed` it was not
    /// stored.
    private func unmake(
        _ keyFile: VaultKeyFile, at source: any KeySource, _ error: KeySourceError, _ note: String,
        _ directory: SyncedDirectory
    ) async {
        if case .failed = error, await !source.remove(keyFile.keyID, parameters: keyFile.parameters) { return }
        forget(note, directory)
    }

    private func refusal(_ source: KeySourceChoice, _ error: KeySourceError) -> VaultError {
        switch error {
        case .needsPassphrase: .locked(.noPassphraseYet)
        // With `auto` the vault may then be kept in memory.
        case .failed(let reason) where source == .keyFile: .unwritable(.key(reason))
        case .locked(let reason, let obstacle): .locked(.notTaken(source, reason), obstacle: obstacle)
        case .absent(let reason), .failed(let reason): .locked(.notTaken(source, reason))
        }
    }

    private func write(
        _ keyFile: VaultKeyFile, _ dataKey: SealingKey, _ wrappingKey: Secret, _ directory: SyncedDirectory
    ) throws(VaultError) {
        let bytes = try VaultError.mapping { () throws(CryptographyError) in
            try keyFile.sealed(dataKey, with: wrappingKey)
        }
        try onDisk { () throws(FileFailure) in try directory.write(bytes, as: VaultKeyFile.name) }
    }

    /// False only if `vault.key` certainly has other content. Otherwise the wrapping key must be kept.
    private func mayBeWritten(_ keyFile: VaultKeyFile, _ directory: SyncedDirectory) -> Bool {
        do throws(FileFailure) {
            guard let bytes = try directory.read(VaultKeyFile.name, atMost: VaultKeyFile.maximumSize) else {
                return false
            }
            let found = try? VaultKeyFile(parsing: bytes)
            return found == nil || found == keyFile
        } catch {
            return true
        }
    }
}

extension SealedFileVault {
    /// Needs an open vault, or one that is locked only because the configuration already names another source. `auto`
    /// selects a source as at the first opening; the current source gets a new key. Throws `refused` if the new source
    /// cannot make a key; the old one then stays in use.
    public func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        if let memory { return try await memory.rekey(to: choice, passphrase: passphrase) }
        guard choice != .memory else { throw .refused(.notIntoMemory) }
        let directory = try onDisk { () throws(FileFailure) in try SyncedDirectory(opening: path) }
        let vault = try await current(directory)
        let target = await decide(choice)
        let written: (keyFile: VaultKeyFile, note: String)
        do throws(VaultError) {
            written = try await writeKeyFile(directory, target, vault.key, passphrase, replacing: vault.keyFile)
        } catch {
            throw keepingOpen(error)
        }
        // `vault.key` is durable now.
        if case .open(var vault) = state {
            vault.keyFile = written.keyFile
            state = .open(vault)
        }
        show(written.keyFile)
        let old = vault.keyFile
        let isGone = await source(old.source)?.remove(old.keyID, parameters: old.parameters) ?? false
        if isGone { forget(written.note, directory) }
    }

    private func current(_ directory: SyncedDirectory) async throws(VaultError) -> OpenVault {
        if case .open(let vault) = state { return vault }
        let found = try onDisk { () throws(FileFailure) in
            try directory.read(VaultKeyFile.name, atMost: VaultKeyFile.maximumSize)
        }
        guard let bytes = found else { return try opened() }
        let keyFile = try parse(bytes)
        guard self.choice != .auto, self.choice != keyFile.source else { return try opened() }
        guard keyFile.source != .passphrase else { throw mismatch(.passphrase) }
        let key = try await dataKey(keyFile, bytes, nil)
        try await enter(directory, keyFile, key)
        return try opened()
    }

    /// If the new source cannot make a key, an open vault stays open.
    private func keepingOpen(_ error: VaultError) -> VaultError {
        guard case .locked(let reason, let obstacle) = error else { return error }
        return .refused(.keyStays(reason), obstacle: obstacle)
    }
}

/// A queue of an actor's own: `fsync` may block for long, and Swift's pool has only one thread for each core.
final class VaultQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "ringback.vault")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
