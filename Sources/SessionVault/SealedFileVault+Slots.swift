internal import Cryptography
internal import Glibc
public import Secrets
internal import StrictJSON

extension SealedFileVault {
    /// Room that a coming store has at least.
    private static let smallestRoom = 64 << 10

    public func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        if let memory { return await memory.load(slot) }
        let vault = try opened()
        let files = try SlotFiles(slot)
        guard let text = try read(files, vault) else { return nil }
        return VaultEntry(text: text, isInterrupted: vault.directory.exists(files.next))
    }

    public func announce(_ slot: VaultSlot) async throws(VaultError) {
        if let memory { return await memory.announce(slot) }
        let vault = try opened()
        let files = try SlotFiles(slot)
        let size = min(max(SealedFileVault.smallestRoom, 2 * vault.directory.size(files.live)), SealedFile.maximumSize)
        // A store that failed with all its bytes written: its text is newer than the slot's, and must not be taken for
        // the outcome of the change that is announced now.
        if vault.directory.exists(files.next) { finishStore(files.live, next: files.next, vault.directory, vault.key) }
        try onDisk { () throws(FileFailure) in try vault.directory.reserve(size, as: files.next) }
    }

    public func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        if let memory { return await memory.store(text, in: slot) }
        let vault = try opened()
        let files = try SlotFiles(slot)
        guard text.count <= SealedFile.maximumText else {
            throw .refused(reason: "The \(slot.kind) of \(slot.account) is larger than 1 MiB.")
        }
        let bytes: [UInt8]
        do throws(CryptographyError) {
            bytes = try SealedFile(header: SlotFiles.header(slot), text: text).sealed(files.kind, with: vault.key)
        } catch {
            throw VaultError(error)
        }
        try onDisk { () throws(FileFailure) in
            guard try !vault.directory.fill(files.next, with: bytes, as: files.live) else { return }
            try vault.directory.write(bytes, as: files.live)
        }
    }

    public func settle(_ slot: VaultSlot) async throws(VaultError) {
        if let memory { return await memory.settle(slot) }
        let vault = try opened()
        let files = try SlotFiles(slot)
        try onDisk { () throws(FileFailure) in
            if try vault.directory.remove(files.next) { try vault.directory.sync() }
        }
    }

    public func remove(_ slot: VaultSlot) async throws(VaultError) {
        if let memory { return await memory.remove(slot) }
        let vault = try opened()
        let files = try SlotFiles(slot)
        try onDisk { () throws(FileFailure) in
            // The mark last: a session without it would pass for one that nobody was about to change.
            let wasLive = try vault.directory.remove(files.live)
            let wasAnnounced = try vault.directory.remove(files.next)
            if wasLive || wasAnnounced { try vault.directory.sync() }
        }
    }

    public func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        if let memory { return await memory.retire(slot) }
        guard slot.kind == .session else { throw .refused(reason: "Only a session can be retired.") }
        var vault = try opened()
        let files = try SlotFiles(slot)
        guard let text = try read(files, vault) else { return nil }
        let retired = files.retired(vault.nextRetired)
        vault.nextRetired += 1
        state = .open(vault)
        let directory = vault.directory
        try onDisk { () throws(FileFailure) in
            try directory.move(files.live, to: retired, as: "set aside")
            do throws(FileFailure) {
                try directory.sync()
                // The mark last, as in remove.
                try directory.remove(files.next)
            } catch {
                // Half of it is the worst: a session that is served here and revoked at the next start. Where there is
                // no way back it has been set aside.
                let isBack = (try? directory.move(retired, to: files.live)) != nil
                if isBack { throw error }
            }
        }
        _ = try? directory.sync()
        return RetiredEntry(id: retired, slot: slot, text: text)
    }

    public func retired() async throws(VaultError) -> [RetiredEntry] {
        if let memory { return await memory.retired() }
        let vault = try opened()
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let numbered = names.compactMap { name in SlotFiles.retiredNumber(name).map { (number: $0, name: name) } }
        return numbered.sorted { $0.number < $1.number }.compactMap { entry in
            // One that cannot be read stays where it is: the others must not wait for it.
            guard let bytes = try? vault.directory.read(entry.name, atMost: SealedFile.maximumSize),
                case .file(let file) = try? SealedFile.read(bytes, .session, key: vault.key),
                let slot = SlotFiles.slot(file.header, .session)
            else { return nil }
            return RetiredEntry(id: entry.name, slot: slot, text: file.text)
        }
    }

    public func sessionSlots(besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        if let memory { return await memory.sessionSlots(besides: known) }
        let vault = try opened()
        var skipped: Set<String> = []
        for slot in known { skipped.insert(try SlotFiles(slot).live) }
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let others = names.filter { SlotFiles.kind(ofLive: $0) == .session && !skipped.contains($0) }
        return others.sorted().compactMap { name in
            guard let bytes = try? vault.directory.read(name, atMost: SealedFile.maximumSize),
                case .file(let file) = try? SealedFile.read(bytes, .session, key: vault.key),
                let slot = SlotFiles.slot(file.header, .session), (try? SlotFiles(slot))?.live == name
            else { return nil }
            return slot
        }
    }

    public func discard(_ id: String) async throws(VaultError) {
        if let memory { return await memory.discard(id) }
        let vault = try opened()
        // An identifier is a file's name: it must not name any other.
        guard SlotFiles.isRetired(id) else { return }
        try onDisk { () throws(FileFailure) in
            if try vault.directory.remove(id) { try vault.directory.sync() }
        }
    }

    // MARK: Reading

    private func read(_ files: SlotFiles, _ vault: OpenVault) throws(VaultError) -> Secret? {
        let found = try onDisk { () throws(FileFailure) in
            try vault.directory.read(files.live, atMost: SealedFile.maximumSize)
        }
        guard let bytes = found else { return nil }
        let place = "\(vault.directory.path)/\(files.live)"
        let reading: SealedFile.Reading
        do throws(CryptographyError) {
            reading = try SealedFile.read(bytes, files.kind, key: vault.key)
        } catch {
            throw VaultError(error)
        }
        switch reading {
        case .file(let file):
            let owner = SlotFiles.slot(file.header, files.kind)
            guard let owner, try SlotFiles(owner) == files else {
                throw setAside(files, vault, because: "it holds what another account wrote")
            }
            return file.text
        case .newer(let version):
            throw .newer(
                reason: "\(place) was written by a newer ringbackd (format \(version)) and was left as it is; update.")
        case .foreign:
            throw .locked(
                reason:
                    "\(place) was sealed with another vault's key and was left as it is. Restore the vault.key that "
                    + "belongs to it, or move the file away and sign in again.")
        case .damaged(let reason):
            throw setAside(files, vault, because: reason)
        }
    }

    /// Makes room for the next sign-in, and keeps what is there: somebody may want to look at it.
    private func setAside(_ files: SlotFiles, _ vault: OpenVault, because reason: String) -> VaultError {
        let place = "\(vault.directory.path)/\(files.live)"
        var number = 1
        while vault.directory.exists(files.damaged(number)), number < 1_000 { number += 1 }
        do throws(FileFailure) {
            guard number < 1_000 else { throw FileFailure(action: "set aside", path: place, code: EEXIST) }
            try vault.directory.move(files.live, to: files.damaged(number), as: "set aside")
            try vault.directory.sync()
        } catch {
            return .damaged(reason: "\(place) cannot be read: \(reason). \(error.reason)")
        }
        let remedy =
            switch files.kind {
            case .registration: "register again."
            case .people: "it is written again."
            case .session, .vaultKey: "sign in again."
            }
        return .damaged(
            reason: "\(place) cannot be read: \(reason). It was set aside as "
                + "\(vault.directory.path)/\(files.damaged(number)); \(remedy)")
    }

    func onDisk<Value>(_ body: () throws(FileFailure) -> Value) throws(VaultError) -> Value {
        do throws(FileFailure) {
            return try body()
        } catch {
            throw VaultError(error)
        }
    }
}
