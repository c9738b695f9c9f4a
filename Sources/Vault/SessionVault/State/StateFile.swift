/// A small file in the state directory that is replaced as a whole and durably: after a crash it has either the old or
/// the new content. It is read only if it belongs to the user and is closed to others.
public struct StateFile: Sendable {
    private let directory: String
    private let name: String

    /// - Parameters:
    ///   - directory: the state directory, whose lock the caller holds.
    ///   - name: the file's name, without a slash.
    public init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    /// Another file of the same directory.
    public func sibling(named name: String) -> StateFile { StateFile(directory: directory, name: name) }

    /// The file's content, at most `limit` bytes; nil if the file does not exist.
    ///
    /// - Throws: ``VaultError/damaged(_:)`` for a file that cannot be read, is longer, or is open to others.
    public func read(atMost limit: Int) throws(VaultError) -> [UInt8]? {
        do throws(FileFailure) {
            let bytes = try SyncedDirectory(opening: directory).readPrivate(name, atMost: limit)
            guard let bytes, bytes.count > limit else { return bytes }
        } catch {
            throw .damaged(.file(error))
        }
        throw .damaged(.tooLong(path: "\(directory)/\(name)", limit: limit))
    }

    /// Replaces the content, or creates the file with mode 0600. A power failure does not undo it after the return.
    ///
    /// - Throws: ``VaultError/unwritable(_:)``; the old content is then kept.
    public func write(_ bytes: [UInt8]) throws(VaultError) {
        do throws(FileFailure) {
            try SyncedDirectory(opening: directory).write(bytes, as: name)
        } catch {
            throw .unwritable(.file(error))
        }
    }

    /// Renames a file with unusable content, so that the next ``write(_:)`` does not overwrite it. Returns the new
    /// path.
    public func setAside() -> String? {
        guard let place = try? SyncedDirectory(opening: directory) else { return nil }
        let other = "\(name).damaged"
        guard (try? place.move(name, to: other)) != nil else { return nil }
        try? place.sync()
        return "\(directory)/\(other)"
    }
}
