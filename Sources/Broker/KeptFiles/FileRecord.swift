internal import SessionVault

/// Which files were written, by the digests of their contents, in the state directory. It says after a crash which files
/// are ours. An entry is written before its file is, and may remain after its file is gone.
actor FileRecord {
    private static let maxSize = 1 << 20

    private let file: StateFile
    private var entries: [String: FileEntry] = [:]

    init(_ file: StateFile) { self.file = file }

    /// Reads the record of the previous daemon. If it cannot be read, no file counts as ours.
    func restore() -> [String: FileEntry] {
        guard let bytes = try? file.read(atMost: FileRecord.maxSize) else { return [:] }
        entries = FileEntry.decode(bytes)
        return entries
    }

    /// Takes over what is known of these files; nil removes an entry. Nothing is written if nothing changes.
    func set(_ changes: [String: FileEntry?]) throws(FileReason) {
        let former = entries
        for (path, entry) in changes { entries[path] = entry }
        guard entries != former else { return }
        do throws(VaultError) {
            try file.write(FileEntry.encode(entries))
        } catch {
            entries = former
            throw FileReason("The record of the kept files cannot be written: \(error.sentence)")
        }
    }
}
