public import Secrets
internal import StrictJSON

extension SealedFileVault {
    /// Needs an open vault, or one that is locked only because the configuration already names another source. Throws
    /// `refused` if the new source cannot make a key; the old one then stays in use.
    ///
    /// - Parameters:
    ///   - choice: `auto` selects a source as at the first opening. The current source gets a new key.
    ///   - passphrase: the new passphrase.
    public func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        if let memory { return try await memory.rekey(to: choice, passphrase: passphrase) }
        guard choice != .memory else {
            throw .refused(.notIntoMemory)
        }
        let directory = try onDisk { () throws(FileFailure) in try SyncedDirectory(opening: path) }
        let vault = try await current(directory)
        let target = choice == .auto ? await preferred() : choice
        let written: (keyFile: VaultKeyFile, note: String)
        do throws(VaultError) {
            written = try await writeKeyFile(directory, target, vault.key, passphrase, replacing: vault.keyFile)
        } catch {
            throw keepingOpen(error)
        }
        // `vault.key` is durable now, so the old wrapping key is not needed any more.
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

    /// If the new source cannot make a key, an open vault stays open, so the error is changed from `locked` to
    /// `refused`.
    private func keepingOpen(_ error: VaultError) -> VaultError {
        guard case .locked(let reason, let obstacle) = error else { return error }
        return .refused(.keyStays(reason), obstacle: obstacle)
    }
}
