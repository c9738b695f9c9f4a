internal import Encodings
internal import SessionVault
internal import StrictJSON

/// Which files were written, by the digests of their contents, in the state directory. It says after a crash which files
/// are ours. An entry is written before its file is, and may remain after its file is gone.
actor FileRecord {
    /// What is known of one file.
    struct Entry: Equatable, Sendable {
        /// SHA-256 of each content that may be at the path.
        var digests: Set<[UInt8]> = []
        /// Unix seconds: when the content is of no use any more; nil if that is not known.
        var expiresAt: Int?
        /// Unix seconds: when the `ttl` began; nil if it has not.
        var beganAt: Int?
    }

    private static let version = 1
    /// A larger file was not written by Ringback.
    private static let maxSize = 1 << 20
    private static let most = 1_024

    private let file: StateFile
    private var entries: [String: Entry] = [:]

    init(_ file: StateFile) { self.file = file }

    /// Reads what the last daemon wrote; nothing if that cannot be read. The files are then not known as ours.
    func restore() -> [String: Entry] {
        guard let bytes = try? file.read(atMost: FileRecord.maxSize) else { return [:] }
        entries = FileRecord.decode(bytes)
        return entries
    }

    /// Takes over what is known of these files; nil removes an entry. Nothing is written if nothing changes.
    func set(_ changes: [String: Entry?]) throws(FileProblem) {
        let former = entries
        for (path, entry) in changes { entries[path] = entry }
        guard entries != former else { return }
        do throws(VaultError) {
            try file.write(FileRecord.encode(entries))
        } catch {
            entries = former
            throw FileProblem(message: "The record of the kept files cannot be written: \(error)")
        }
    }

    static func encode(_ entries: [String: Entry]) -> [UInt8] {
        let files = entries.sorted { $0.key < $1.key }.map { path, entry -> JSON in
            var object = JSONObject([
                .init("path", .string(path)),
                .init("sha256", .array(entry.digests.map { .string(Base64.encode($0)) }.sorted { $0.text < $1.text })),
            ])
            object["expires_at"] = entry.expiresAt.map { .integer($0) }
            object["began_at"] = entry.beganAt.map { .integer($0) }
            return .object(object)
        }
        let document: JSON = ["version": .integer(version), "files": .array(files)]
        return document.serialized()
    }

    static func decode(_ bytes: [UInt8]) -> [String: Entry] {
        guard let document = try? JSON(parsing: bytes), document["version"]?.integer == version else { return [:] }
        var entries: [String: Entry] = [:]
        for file in (document["files"]?.array ?? []).prefix(most) {
            guard let path = file["path"]?.string, path.hasPrefix("/"), !path.utf8.contains(0) else { continue }
            let digests = (file["sha256"]?.array ?? []).compactMap { $0.string.flatMap { Base64.decode($0) } }
            entries[path] = Entry(
                digests: Set(digests.filter { $0.count == 32 }), expiresAt: file["expires_at"]?.integer,
                beganAt: file["began_at"]?.integer)
        }
        return entries
    }
}
