// The vault's key changes hands in steps: its source makes a new wrapping key, `vault.key` names it, the old one goes. A
// note in the state directory says which two keys they are, from before the first step to after the last, so that what
// a killed process leaves in a source does not rest there for good. No other key is ever touched: a source holds those
// of other vaults as well (another state directory, another machine's), and nobody can tell whose one is.
//
// The note's name ends in its own inode number. A copy of it is another file: it was restored from a backup, or belongs
// to a second vault, and what has become of its keys since is not known here. It is dropped, and the keys stay.

internal import StrictJSON

/// The note: the key that is made for a vault, and the one that it takes the place of.
struct KeyChange: Sendable {
    static let name = "vault.key.change"
    private static let maximumSize = 2 * SealedFile.maximumHeader

    /// Without parameters, which only the source knows.
    let made: VaultKeyFile
    let replaced: VaultKeyFile?

    /// Writes it durably; gives its name.
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

    /// Nil for what was copied, was killed before it had its number, or is no such note.
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

    /// The key that nobody needs, given the one that `vault.key` names. Nil where that is neither of the two: something
    /// else has happened since, and both may be in use.
    ///
    /// - Parameter isMadeHere: the named key is the first one of a later start in this directory. Without that an
    ///   unfinished first start says nothing: `vault.key` may have been replaced by another vault's after the first start
    ///   had sealed sessions, and comes back with them.
    func orphan(beside named: VaultKeyFile, isMadeHere: Bool) -> VaultKeyFile? {
        if named.keyID == made.keyID { return replaced }
        guard let replaced else { return isMadeHere ? made : nil }
        return named.keyID == replaced.keyID ? made : nil
    }

    /// True if it tells of the making of this key as the first of all.
    func isFirst(_ named: VaultKeyFile) -> Bool { replaced == nil && made.keyID == named.keyID }
}

extension SealedFileVault {
    /// Ends what a killed process had begun. `named` is what `vault.key` says, now that it has been opened.
    func finishKeyChanges(_ directory: SyncedDirectory, _ named: VaultKeyFile) async {
        guard let names = try? directory.names().filter(KeyChange.isNote) else { return }
        let notes = names.map { (name: $0, change: KeyChange($0, in: directory)) }
        let isMadeHere = notes.contains { $0.change?.isFirst(named) == true }
        var isFinished = true
        // The note of the named key last: the others are judged by it.
        for last in [false, true] {
            for (name, change) in notes where (change?.isFirst(named) == true) == last {
                if let orphan = change?.orphan(beside: named, isMadeHere: isMadeHere) {
                    // A source that is not there now may be at the next start.
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
