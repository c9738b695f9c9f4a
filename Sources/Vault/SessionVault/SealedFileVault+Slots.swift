internal import Cryptography
internal import Glibc
public import RingbackBase

extension SealedFileVault {
    /// In bytes.
    private static let smallestRoom = 64 << 10

    public func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        if let memory { return await memory.load(slot) }
        return try entry(in: slot)
    }

    /// Reads all slots in one job of the vault's queue, because a daemon may load hundreds of slots at start.
    public func load(_ slots: [VaultSlot]) async -> [Result<VaultEntry?, VaultError>] {
        if let memory { return await memory.load(slots) }
        return slots.map { slot in Result { () throws(VaultError) in try entry(in: slot) } }
    }

    private func entry(in slot: VaultSlot) throws(VaultError) -> VaultEntry? {
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
        // A complete `.next` file, from a store that failed, has a text that is newer than the slot's. Installed later,
        // it would be taken for the result of the change that is announced here.
        if vault.directory.exists(files.next) { finishStore(files.live, next: files.next, vault.directory, vault.key) }
        try onDisk { () throws(FileFailure) in try vault.directory.reserve(size, as: files.next) }
    }

    public func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        if let memory { return await memory.store(text, in: slot) }
        let vault = try opened()
        try put(text, in: slot, try SlotFiles(slot), vault)
    }

    private func put(_ text: Secret, in slot: VaultSlot, _ files: SlotFiles, _ vault: OpenVault) throws(VaultError) {
        let bytes = try sealed(text, in: slot, files, vault)
        try removeCopy(of: files, vault.directory)
        try onDisk { () throws(FileFailure) in
            guard try !vault.directory.fill(files.next, with: bytes, as: files.live) else { return }
            try vault.directory.write(bytes, as: files.live)
        }
    }

    private func sealed(
        _ text: Secret, in slot: VaultSlot, _ files: SlotFiles, _ vault: OpenVault
    ) throws(VaultError) -> [UInt8] {
        guard text.count <= SealedFile.maximumText else { throw .refused(.tooLarge(slot.kind, account: slot.account)) }
        return try VaultError.mapping { () throws(CryptographyError) in
            try SealedFile(header: SlotFiles.header(slot), text: text).sealed(.init(files.kind), with: vault.key)
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
            // The mark is removed last: without it a session would look as if no change had been announced.
            let wasLive = try vault.directory.remove(files.live)
            let wasAnnounced = try vault.directory.remove(files.next)
            if wasLive || wasAnnounced { try vault.directory.sync() }
        }
    }

    public func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        if let memory { return await memory.retire(slot) }
        guard slot.kind == .session else { throw .refused(.onlySessionsRetire) }
        var vault = try opened()
        let files = try SlotFiles(slot)
        guard let text = try read(files, vault) else { return nil }
        let retired = files.retired(vault.nextRetired)
        vault.nextRetired += 1
        state = .open(vault)
        let directory = vault.directory
        try onDisk { () throws(FileFailure) in
            try directory.move(files.live, to: retired, as: .setAside)
            do throws(FileFailure) {
                try directory.sync()
                // The mark is removed last, as in `remove`.
                try directory.remove(files.next)
            } catch {
                // Without undoing the rename, the session would still be used here and be revoked at the next start. If
                // that fails too, treat the retirement as done.
                if (try? directory.move(retired, to: files.live)) != nil { throw error }
            }
        }
        _ = try? directory.sync()
        return RetiredEntry(id: retired, slot: slot, text: text)
    }

    public func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        if let memory { return await memory.replace(text, in: slot) }
        guard slot.kind == .session else { throw .refused(.onlySessionsRetire) }
        var vault = try opened()
        let files = try SlotFiles(slot)
        try removeCopy(of: files, vault.directory)
        guard let former = try former(files, vault) else {
            try put(text, in: slot, files, vault)
            return nil
        }
        let retired = files.retired(vault.nextRetired)
        vault.nextRetired += 1
        // Until the new text is stored, the session in the copy has not ended.
        vault.copies[files.live] = retired
        state = .open(vault)
        let directory = vault.directory
        do throws(VaultError) {
            try onDisk { () throws(FileFailure) in try directory.write(former.bytes, as: retired) }
            vault.copies[files.live] = nil
            state = .open(vault)
            try put(text, in: slot, files, vault)
        } catch {
            vault.copies[files.live] = retired
            state = .open(vault)
            try? removeCopy(of: files, directory)
            throw error
        }
        return RetiredEntry(id: retired, slot: slot, text: former.text)
    }

    public func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        if let memory { return await memory.keep(text, retiredFrom: slot) }
        guard slot.kind == .session else { throw .refused(.onlySessionsRetire) }
        var vault = try opened()
        let files = try SlotFiles(slot)
        let bytes = try sealed(text, in: slot, files, vault)
        let retired = files.retired(vault.nextRetired)
        vault.nextRetired += 1
        state = .open(vault)
        try onDisk { () throws(FileFailure) in try vault.directory.write(bytes, as: retired) }
        return RetiredEntry(id: retired, slot: slot, text: text)
    }

    /// The slot's content, as text and as the file's bytes. Nil if the slot is empty, or if its file was damaged and
    /// was renamed.
    private func former(_ files: SlotFiles, _ vault: OpenVault) throws(VaultError) -> (text: Secret, bytes: [UInt8])? {
        let text: Secret?
        do throws(VaultError) {
            text = try read(files, vault)
        } catch {
            guard case .damaged = error else { throw error }
            return nil
        }
        let bytes = try onDisk { () throws(FileFailure) in
            try vault.directory.read(files.live, atMost: SealedFile.maximumSize)
        }
        guard let text, let bytes else { return nil }
        return (text, bytes)
    }

    /// Removes a copy that an interrupted `replace` left, before the slot's file changes. Afterwards the copy would be
    /// taken for a session that has ended.
    private func removeCopy(of files: SlotFiles, _ directory: SyncedDirectory) throws(VaultError) {
        guard case .open(var vault) = state, let copy = vault.copies[files.live] else { return }
        // If a store that reported an error did take effect, the bytes differ: the session in the retired file was
        // replaced.
        try onDisk { () throws(FileFailure) in
            if try isCopy(copy, of: files.live, directory) {
                try directory.remove(copy)
                try directory.sync()
            }
        }
        vault.copies[files.live] = nil
        state = .open(vault)
    }

    private func read(_ files: SlotFiles, _ vault: OpenVault) throws(VaultError) -> Secret? {
        let found = try onDisk { () throws(FileFailure) in
            try vault.directory.read(files.live, atMost: SealedFile.maximumSize)
        }
        guard let bytes = found else { return nil }
        let place = "\(vault.directory.path)/\(files.live)"
        let file: SealedFile
        do throws(SealedFile.Failure) {
            file = try SealedFile.read(bytes, .init(files.kind), key: vault.key)
        } catch {
            switch error {
            case .newer(let version): throw .newer(.newer(path: place, version: version))
            case .foreign: throw .locked(.otherVaultsKey(path: place))
            case .damaged(let damage): throw setAside(files, vault, because: damage)
            case .cryptography: throw .refused(.cryptography)
            }
        }
        guard let owner = SlotFiles.slot(file.header, files.kind), try SlotFiles(owner) == files else {
            throw setAside(files, vault, because: .otherAccount)
        }
        return file.text
    }

    /// Renames a damaged file, so that the slot can be used again.
    private func setAside(_ files: SlotFiles, _ vault: OpenVault, because damage: FileDamage) -> VaultError {
        let place = "\(vault.directory.path)/\(files.live)"
        var number = 1
        while vault.directory.exists(files.damaged(number)), number < 1_000 { number += 1 }
        let other = files.damaged(number)
        do throws(FileFailure) {
            guard number < 1_000 else { throw FileFailure(action: .setAside, path: place, code: EEXIST) }
            try vault.directory.move(files.live, to: other, as: .setAside)
            try vault.directory.sync()
        } catch {
            return .damaged(.damagedInPlace(path: place, damage, error))
        }
        return .damaged(.damaged(path: place, damage, kind: files.kind, place: "\(vault.directory.path)/\(other)"))
    }

    func onDisk<Value>(_ body: () throws(FileFailure) -> Value) throws(VaultError) -> Value {
        do throws(FileFailure) {
            return try body()
        } catch {
            throw VaultError(error)
        }
    }
}

/// The note about a change of the vault's key: the new source makes a wrapping key, `vault.key` is replaced, the old
/// wrapping key is removed. The note names both keys from before the first step until after the last. If the process is
/// killed in between, the next start removes the key that is not used. Other keys in the source are never touched: they
/// may belong to other vaults.
///
/// The note's file name ends in its own inode number. A copy of the file has another inode: it comes from a backup or a
/// copied state directory, and its keys may be in use elsewhere. Such a note is deleted, and its keys are kept.
struct KeyChange: Sendable {
    static let name = "vault.key.change"
    private static let maximumSize = 2 * SealedFile.maximumHeader
    /// Without the source's parameters, which are not known yet.
    let made: VaultKeyFile
    let replaced: VaultKeyFile?

    /// Durable. Returns the file's name.
    func write(in directory: SyncedDirectory) throws(FileFailure) -> String {
        let note: JSONObject = ["made": made.header, "replaced": replaced?.header]
        try directory.write(JSON.object(note).serialized(), as: KeyChange.name)
        let numbered = "\(KeyChange.name)-\(directory.inode(KeyChange.name))"
        try directory.move(KeyChange.name, to: numbered)
        try directory.sync()
        return numbered
    }

    static func isNote(_ name: String) -> Bool { name.hasPrefix(KeyChange.name) }

    /// The key that is no longer used, if `vault.key` names the other one. Nil if it names a third key: something else
    /// has happened since, and both keys may be in use. `isMadeHere`: another note says that the named key was made in
    /// this directory by a later first start. Without that, the note of an unfinished first start proves nothing: the
    /// named key may come from another vault that replaced this one's, and the first key may be restored together with
    /// its sessions.
    func orphan(beside named: VaultKeyFile, isMadeHere: Bool) -> VaultKeyFile? {
        if named.keyID == made.keyID { return replaced }
        guard let replaced else { return isMadeHere ? made : nil }
        return named.keyID == replaced.keyID ? made : nil
    }

    /// The creation of the named key as the vault's first key.
    func isFirst(_ named: VaultKeyFile) -> Bool { replaced == nil && made.keyID == named.keyID }
}

extension KeyChange {
    /// Nil if the note is a copy, was not renamed yet when the process was killed, or is malformed.
    init?(_ name: String, in directory: SyncedDirectory) {
        guard name == "\(KeyChange.name)-\(directory.inode(name))",
            let bytes = try? directory.readPrivate(name, atMost: KeyChange.maximumSize),
            let note = (try? JSON(parsing: bytes))?.object,
            let made = note["made"]?.object.flatMap({ try? VaultKeyFile(header: $0) })
        else { return nil }
        let replaced = note["replaced"]?.object.flatMap { try? VaultKeyFile(header: $0) }
        guard replaced != nil || note["replaced"] == nil else { return nil }
        self.init(made: made, replaced: replaced)
    }
}

extension SealedFileVault {
    /// Finishes key changes that were interrupted. `named` is the content of `vault.key`, which has been opened.
    func finishKeyChanges(_ directory: SyncedDirectory, _ named: VaultKeyFile) async {
        guard let names = try? directory.names().filter(KeyChange.isNote) else { return }
        let notes = names.map { (name: $0, change: KeyChange($0, in: directory)) }
        let isMadeHere = notes.contains { $0.change?.isFirst(named) == true }
        var isFinished = true
        // The note of the named key is handled last, because the others are judged by it.
        for last in [false, true] {
            for (name, change) in notes where (change?.isFirst(named) == true) == last {
                if let orphan = change?.orphan(beside: named, isMadeHere: isMadeHere) {
                    // If the source is not available now, the next start tries again.
                    guard let source = source(orphan.source),
                        await source.remove(orphan.keyID, parameters: orphan.parameters)
                    else {
                        isFinished = false
                        continue
                    }
                }
                if !last || isFinished { forget(name, directory) }
            }
        }
    }

    func forget(_ note: String, _ directory: SyncedDirectory) {
        guard (try? directory.remove(note)) == true else { return }
        try? directory.sync()
    }

    public func retired() async throws(VaultError) -> [RetiredEntry] {
        if let memory { return await memory.retired() }
        let vault = try opened()
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let numbered = names.compactMap { name in SlotFiles.retiredNumber(name).map { (number: $0, name: name) } }
        return numbered.sorted { $0.number < $1.number }.compactMap { entry in
            // A file that cannot be read is skipped, so that the others are not delayed.
            guard !vault.copies.values.contains(entry.name),
                let bytes = try? vault.directory.read(entry.name, atMost: SealedFile.maximumSize),
                let file = try? SealedFile.read(bytes, .session, key: vault.key),
                let slot = SlotFiles.slot(file.header, .session)
            else { return nil }
            return RetiredEntry(id: entry.name, slot: slot, text: file.text)
        }
    }

    public func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        if let memory { return await memory.slots(of: kind, besides: known) }
        let vault = try opened()
        var skipped: Set<String> = []
        for slot in known { skipped.insert(try SlotFiles(slot).live) }
        let names = try onDisk { () throws(FileFailure) in try vault.directory.names() }
        let others = names.filter { SlotFiles.kind(ofLive: $0) == kind && !skipped.contains($0) }
        return others.sorted().compactMap { name in
            guard let bytes = try? vault.directory.read(name, atMost: SealedFile.maximumSize),
                let file = try? SealedFile.read(bytes, .init(kind), key: vault.key),
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
