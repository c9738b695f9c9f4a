internal import Cryptography
internal import Secrets

extension SealedFileVault {
    public func retired() async throws(VaultError) -> [RetiredEntry] {
        if let memory { return await memory.retired() }
        let vault = try opened()
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let numbered = names.compactMap { name in SlotFiles.retiredNumber(name).map { (number: $0, name: name) } }
        return numbered.sorted { $0.number < $1.number }.compactMap { entry in
            // A file that cannot be read is skipped, so that the others are not delayed.
            guard !vault.copies.values.contains(entry.name),
                let bytes = try? vault.directory.read(entry.name, atMost: SealedFile.maximumSize),
                case .file(let file) = try? SealedFile.read(bytes, .session, key: vault.key),
                let slot = SlotFiles.slot(file.header, .session)
            else { return nil }
            return RetiredEntry(id: entry.name, slot: slot, text: file.text)
        }
    }

    public func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        if let memory { return await memory.slots(of: kind, besides: known) }
        let (vault, kind) = (try opened(), SealedFile.Kind(kind))
        var skipped: Set<String> = []
        for slot in known { skipped.insert(try SlotFiles(slot).live) }
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let others = names.filter { SlotFiles.kind(ofLive: $0) == kind && !skipped.contains($0) }
        return others.sorted().compactMap { name in
            guard let bytes = try? vault.directory.read(name, atMost: SealedFile.maximumSize),
                case .file(let file) = try? SealedFile.read(bytes, kind, key: vault.key),
                let slot = SlotFiles.slot(file.header, kind), (try? SlotFiles(slot))?.live == name
            else { return nil }
            return slot
        }
    }

    public func discard(_ id: String) async throws(VaultError) {
        if let memory { return await memory.discard(id) }
        let vault = try opened()
        // The identifier is a file name. It must not name another file.
        guard SlotFiles.isRetired(id) else { return }
        try onDisk { () throws(FileFailure) in
            if try vault.directory.remove(id) { try vault.directory.sync() }
        }
    }
}
