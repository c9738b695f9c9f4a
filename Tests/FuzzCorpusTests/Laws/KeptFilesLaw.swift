import KeptFiles

/// The record of the kept files, as it rests in the state directory.
enum KeptFilesLaw {
    static func check(_ bytes: [UInt8]) throws {
        let entries = FileEntry.decode(bytes)
        try hold("a path is absolute", entries.keys.allSatisfy { $0.hasPrefix("/") && !$0.utf8.contains(0) })
        try hold("a digest has 32 bytes", entries.values.allSatisfy { $0.digests.allSatisfy { $0.count == 32 } })
        try hold("what is written is read as the same", FileEntry.decode(FileEntry.encode(entries)) == entries)
    }
}
