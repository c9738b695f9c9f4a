internal import Cryptography

extension SealedFileVault {
    /// Opens the vault with a key that was verified against `vault.key`. Checks the sealed files and cleans up after a
    /// killed process.
    func enter(_ directory: SyncedDirectory, _ keyFile: VaultKeyFile, _ key: SealingKey) async throws(VaultError) {
        let opened = try onDisk { () throws(FileFailure) in
            try directory.subdirectory(Self.folder, isMade: true)
        }
        guard let folder = opened else {
            throw .unwritable(.folderNotOpened(path: folderPath))
        }
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
    /// the copies that could not be removed, by the name of the slot's file.
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

    /// If the key of `vault.key` opens none of the files, it is the wrong one. Throws `locked`, because storing new
    /// sessions under it would make recovery harder.
    private func refuseForeign(
        _ names: [String], _ folder: SyncedDirectory, _ key: SealingKey
    ) throws(VaultError) {
        var foreign = 0
        for name in names where SlotFiles.isPrecious(name) {
            guard let start = try? folder.read(name, atMost: SealedFile.checkEnd),
                let check = SealedFile.check(of: start)
            else { continue }
            if check.elementsEqual(key.check) { return }
            // The check value is not authenticated and may be the only damaged part.
            if let bytes = try? folder.read(name, atMost: SealedFile.maximumSize),
                case .file = try? SealedFile.read(bytes, SlotFiles.kind(ofLive: name) ?? .session, key: key)
            {
                return
            }
            foreign += 1
        }
        guard foreign == 0 else {
            throw .locked(.foreignSessions(path: keyFilePath, count: foreign, folder: folder.path))
        }
    }

    /// Finishes a store that was interrupted or failed after its last byte was written. The file's text is complete,
    /// and may contain the only refresh token that the provider still accepts. An incomplete file only marks an
    /// announcement and is left as it is.
    func finishStore(_ live: String, next: String, _ folder: SyncedDirectory, _ key: SealingKey) {
        guard let bytes = try? folder.read(next, atMost: SealedFile.maximumSize),
            let kind = SlotFiles.kind(ofLive: live), case .file(let file) = try? SealedFile.read(bytes, kind, key: key),
            let slot = SlotFiles.slot(file.header, kind), let files = try? SlotFiles(slot), files.live == live
        else { return }
        guard (try? folder.syncFile(next)) != nil, (try? folder.move(next, to: live)) != nil else { return }
        _ = try? folder.sync()
    }
}
