// For files with keys and their directory, which must belong to the user and be closed to others.

internal import Glibc

extension SyncedDirectory {
    /// Creates the directory and its parents with mode 0700, durably.
    static func make(_ path: String) throws(FileFailure) {
        var end = path.startIndex
        var above = "/"
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            let part = String(path[..<end])
            if unsafe access(part, F_OK) != 0 {
                let isMade = unsafe mkdir(part, 0o700) == 0
                let code = errno
                guard isMade || code == EEXIST else { throw FileFailure(action: .make, path: part, code: code) }
                try SyncedDirectory(opening: above, followsLink: true).sync()
            } else {
                // A process that created it may have been killed before its sync.
                try? SyncedDirectory(opening: above, followsLink: true).sync()
            }
            above = part
        }
    }

    /// The content of a regular file that belongs to the user and is not accessible to others. Nil if there is no file.
    /// Throws EPERM if the file belongs to another user or is accessible to others.
    func readPrivate(_ name: String, atMost limit: Int) throws(FileFailure) -> [UInt8]? {
        guard let bytes = try read(name, atMost: limit) else { return nil }
        guard isPrivate(name) else { throw FileFailure(action: .use, path: path + "/" + name, code: EPERM) }
        return bytes
    }

    /// Creates a new file with mode 0600, durably. Throws EEXIST if there is one.
    func makeNew(_ bytes: [UInt8], as name: String) throws(FileFailure) {
        guard !exists(name) else { throw FileFailure(action: .make, path: path + "/" + name, code: EEXIST) }
        try write(bytes, as: name)
    }
}
