// Changing the vault's key takes three steps: the new source makes a wrapping key, `vault.key` is replaced, the old
// wrapping key is removed. A note in the state directory names both keys from before the first step until after the
// last. If the process is killed in between, the next start finds the note and removes the key that is not used. Other
// keys in the source are never touched: they may belong to other vaults (another state directory or machine).
//
// The note's file name ends in its own inode number. A copy of the file has another inode: it comes from a backup or
// belongs to a copied state directory, and its keys may be in use elsewhere. Such a note is deleted, and its keys are
// kept.

internal import StrictJSON

/// The note about a key change: the new key, and the one that it replaces.
struct KeyChange: Sendable {
    static let name = "vault.key.change"
    private static let maximumSize = 2 * SealedFile.maximumHeader

    /// The new key's file, without the source's parameters, which are not known yet.
    let made: VaultKeyFile
    let replaced: VaultKeyFile?

    /// Writes the note durably. Returns its file name.
    func write(in directory: SyncedDirectory) throws(FileFailure) -> String {
        var note = JSONObject([JSONObject.Member("made", .object(made.header))])
        if let replaced { note.members.append(JSONObject.Member("replaced", .object(replaced.header))) }
        try directory.write(JSON.object(note).serialized(), as: KeyChange.name)
        let numbered = "\(KeyChange.name)-\(directory.inode(KeyChange.name))"
        try directory.move(KeyChange.name, to: numbered)
        try directory.sync()
        return numbered
    }

    static func isNote(_ name: String) -> Bool { name.hasPrefix(KeyChange.name) }

    /// Reads a note. Nil if it is a copy, was not renamed yet when the process was killed, or is malformed.
    init?(_ name: String, in directory: SyncedDirectory) {
        guard name == "\(KeyChange.name)-\(directory.inode(name))",
            let bytes = try? directory.readPrivate(name, atMost: KeyChange.maximumSize),
            let note = (try? JSON(parsing: bytes))?.object,
            let made = note["made"]?.object.flatMap({ try? VaultKeyFile(header: $0) })
        else { return nil }
        self.made = made
        guard let replaced = note["replaced"] else {
            self.replaced = nil
            return
        }
        guard let replaced = replaced.object.flatMap({ try? VaultKeyFile(header: $0) }) else { return nil }
        self.replaced = replaced
    }

    init(made: VaultKeyFile, replaced: VaultKeyFile?) {
        self.made = made
        self.replaced = replaced
    }

    /// The key that is no longer used, if `vault.key` names the other one. Nil if it names a third key: something else
    /// has happened since, and both keys may be in use.
    ///
    /// - Parameter isMadeHere: true if another note says that the named key was made in this directory by a later first
    ///   start. Without that, the note of an unfinished first start proves nothing: the named key may come from another
    ///   vault that replaced this one's after sessions were sealed, and the first key may be restored together with
    ///   them.
    func orphan(beside named: VaultKeyFile, isMadeHere: Bool) -> VaultKeyFile? {
        if named.keyID == made.keyID { return replaced }
        guard let replaced else { return isMadeHere ? made : nil }
        return named.keyID == replaced.keyID ? made : nil
    }

    /// True if this note is about the creation of the named key as the vault's first key.
    func isFirst(_ named: VaultKeyFile) -> Bool { replaced == nil && made.keyID == named.keyID }
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
}
