internal import RingbackBase

/// One file's entry in the record of the kept files, and the record as JSON.
public struct FileEntry: Equatable, Sendable {
    /// SHA-256 of each content that may be at the path.
    public var digests: Set<[UInt8]> = []
    /// Unix seconds: when the content expires; nil if that is not known.
    public var expiresAt: Int?
    /// Unix seconds: when the `ttl` began; nil if it has not.
    public var beganAt: Int?

    private static let version = 1
    private static let most = 1_024

    public static func encode(_ entries: [String: FileEntry]) -> [UInt8] {
        let files = entries.sorted { $0.key < $1.key }.map { path, entry -> JSONObject in
            [
                "path": path, "sha256": entry.digests.map { Base64.encode($0) }.sorted(),
                "expires_at": entry.expiresAt, "began_at": entry.beganAt,
            ]
        }
        let document: JSONObject = ["version": version, "files": files]
        return JSON.object(document).serialized()
    }

    /// The entries of a record, by path; empty if it cannot be read. Invalid paths and digests are left out.
    public static func decode(_ bytes: [UInt8]) -> [String: FileEntry] {
        guard let document = try? JSON(parsing: bytes), document["version"]?.integer == version else { return [:] }
        var entries: [String: FileEntry] = [:]
        for file in (document["files"]?.array ?? []).prefix(most) {
            guard let path = file["path"]?.string, path.hasPrefix("/"), !path.utf8.contains(0) else { continue }
            let digests = (file["sha256"]?.array ?? []).compactMap { $0.string.flatMap { Base64.decode($0) } }
            entries[path] = FileEntry(
                digests: Set(digests.filter { $0.count == 32 }), expiresAt: file["expires_at"]?.integer,
                beganAt: file["began_at"]?.integer)
        }
        return entries
    }
}
