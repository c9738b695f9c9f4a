// The key source is chosen once, when there is neither a `vault.key` nor any sealed file. From then on only the
// recorded source is used. If it does not give the right key, the vault stays locked and says why. Choosing another
// source or making a new key would silently lose every session.

internal import Cryptography
internal import Glibc
internal import Secrets
internal import StrictJSON

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

    // MARK: The recorded source

    func parse(_ bytes: [UInt8]) throws(VaultError) -> VaultKeyFile {
        do throws(SealedFile.SplitFailure) {
            return try VaultKeyFile(parsing: bytes)
        } catch {
            throw unreadable(error)
        }
    }

    var keyFilePath: String { "\(path)/\(VaultKeyFile.name)" }
    var folderPath: String { "\(path)/\(Self.folder)" }

    private func unreadable(_ failure: SealedFile.SplitFailure) -> VaultError {
        switch failure {
        case .newer(let version): .newer(.newer(path: keyFilePath, version: version))
        case .damaged(let damage): .locked(.damagedKeyFile(path: keyFilePath, folder: folderPath, damage))
        }
    }

    private func refusal(_ failure: VaultKeyFile.Failure, _ source: KeySourceChoice) -> VaultError {
        switch failure {
        case .unreadable(let failure): unreadable(failure)
        case .otherKey where source == .passphrase: .wrongPassphrase
        case .otherKey: .locked(.otherKey(source, path: keyFilePath, folder: folderPath))
        }
    }

    /// The error for a vault whose key is kept by another source than the configured one.
    func mismatch(_ recorded: KeySourceChoice) -> VaultError {
        .locked(
            .keySourceDiffers(recorded: recorded, configured: choice),
            obstacle: .keySourceDiffers(recorded: recorded, configured: choice))
    }

    /// The data key of `vault.key`, unwrapped with the source that it names.
    func dataKey(
        _ keyFile: VaultKeyFile, _ bytes: [UInt8], _ passphrase: Secret?
    ) async throws(VaultError) -> SealingKey {
        guard let source = source(keyFile.source) else {
            throw .locked(.keySourceMissing(keyFile.source))
        }
        let wrappingKey: Secret
        do throws(KeySourceError) {
            wrappingKey = try await source.fetch(
                keyFile.keyID, parameters: keyFile.parameters, passphrase: passphrase)
        } catch {
            throw locked(keyFile.source, error)
        }
        do {
            return try VaultKeyFile.open(bytes, with: wrappingKey)
        } catch let failure as VaultKeyFile.Failure {
            throw refusal(failure, keyFile.source)
        } catch {
            throw .locked(.notUnwrapped)
        }
    }

    func locked(_ source: KeySourceChoice, _ error: KeySourceError) -> VaultError {
        switch error {
        case .locked(let reason, let obstacle): .locked(.keptBy(source, reason), obstacle: obstacle)
        case .absent(let reason), .failed(let reason): .locked(.keptBy(source, reason))
        case .needsPassphrase: .locked(.needsPassphrase)
        }
    }

    // MARK: The first opening

    private func openFirst(_ directory: SyncedDirectory, _ passphrase: Secret?) async throws(VaultError) {
        let folder = try onDisk { () throws(FileFailure) in
            try directory.subdirectory(Self.folder, isMade: false)
        }
        let names = try onDisk { () throws(FileFailure) in try folder?.names() ?? [] }
        let count = names.count(where: SlotFiles.isPrecious)
        guard count == 0 else {
            throw .locked(.keyFileMissing(path: keyFilePath, count: count, folder: folderPath))
        }
        let decided = await decide()
        if choice == .auto, source(decided) == nil {
            return becomeMemory(because: .noKeyDirectory)
        }
        if decided == .passphrase { showNewPassphraseNeeded() }
        do throws(VaultError) {
            try await create(directory, decided, passphrase)
        } catch {
            // Only for `auto`, and only if no source was chosen yet because nothing can be written. A source that
            // exists but fails is not skipped.
            guard choice == .auto, case .unwritable(let reason) = error else { throw error }
            // If the disk is full or faulty at the moment, the vault stays locked and opening is tried again later.
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
    func decide() async -> KeySourceChoice {
        guard choice == .auto else { return choice }
        return await preferred()
    }

    func preferred() async -> KeySourceChoice {
        for candidate in [KeySourceChoice.systemdCredential, .secretService] {
            if let source = source(candidate), await source.canHoldNewKey() { return candidate }
        }
        return .keyFile
    }

    private func create(
        _ directory: SyncedDirectory, _ choice: KeySourceChoice, _ passphrase: Secret?
    ) async throws(VaultError) {
        let dataKey: SealingKey
        do throws(CryptographyError) { dataKey = try SealingKey.random() } catch { throw VaultError(error) }
        // The folder is created first. If that fails, no key is made in the source.
        _ = try onDisk { () throws(FileFailure) in try directory.subdirectory(Self.folder, isMade: true) }
        let written = try await writeKeyFile(directory, choice, dataKey, passphrase, replacing: nil)
        try await enter(directory, written.keyFile, dataKey)
    }

    /// Makes a wrapping key in the source and writes `vault.key` with it. If that fails, the wrapping key is removed
    /// again. Also returns the name of the note about the change, which stays until the old key is removed.
    func writeKeyFile(
        _ directory: SyncedDirectory, _ choice: KeySourceChoice, _ dataKey: SealingKey, _ passphrase: Secret?,
        replacing old: VaultKeyFile?
    ) async throws(VaultError) -> (keyFile: VaultKeyFile, note: String) {
        guard let source = source(choice) else {
            throw .locked(.noSuchKeeper(choice))
        }
        guard choice != .passphrase || passphrase?.isEmpty != true else {
            throw .refused(.emptyPassphrase)
        }
        var keyFile = VaultKeyFile(source: choice, keyID: VaultKeyFile.newKeyID(), parameters: JSONObject())
        let change = KeyChange(made: keyFile, replaced: old)
        let note = try onDisk { () throws(FileFailure) in try change.write(in: directory) }
        let made: (key: Secret, parameters: JSONObject)
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
            if !mayBeWritten(keyFile, directory),
                await source.remove(keyFile.keyID, parameters: made.parameters)
            {
                forget(note, directory)
            }
            throw error
        }
        return (keyFile, note)
    }

    /// Removes a key that the source may have stored before it failed. After the error `failed` the key may have been
    /// stored; after the other errors it was not.
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
        // The key file cannot be created. With `auto` the vault may then be kept in memory.
        case .failed(let reason) where source == .keyFile: .unwritable(.key(reason))
        case .locked(let reason, let obstacle): .locked(.notTaken(source, reason), obstacle: obstacle)
        case .absent(let reason), .failed(let reason): .locked(.notTaken(source, reason))
        }
    }

    private func write(
        _ keyFile: VaultKeyFile, _ dataKey: SealingKey, _ wrappingKey: Secret, _ directory: SyncedDirectory
    ) throws(VaultError) {
        let bytes: [UInt8]
        do throws(CryptographyError) {
            bytes = try keyFile.sealed(dataKey, with: wrappingKey)
        } catch {
            throw VaultError(error)
        }
        try onDisk { () throws(FileFailure) in try directory.write(bytes, as: VaultKeyFile.name) }
    }

    /// False only if `vault.key` certainly has other content. If that is not certain, the wrapping key must be kept.
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
