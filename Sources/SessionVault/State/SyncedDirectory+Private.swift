// Files that hold a key, and the directory they are in, are the user's and nobody else's.

internal import Glibc

extension SyncedDirectory {
    /// Makes the directory and those above it, 0700, durably.
    static func make(_ path: String) throws(FileFailure) {
        var end = path.startIndex
        var above = "/"
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            let part = String(path[..<end])
            if unsafe access(part, F_OK) != 0 {
                let isMade = unsafe mkdir(part, 0o700) == 0
                let code = errno
                guard isMade || code == EEXIST else { throw FileFailure(action: "make", path: part, code: code) }
                try SyncedDirectory(opening: above, followsLink: true).sync()
            } else {
                // Somebody may have made it and been killed before its name was safe.
                try? SyncedDirectory(opening: above, followsLink: true).sync()
            }
            above = part
        }
    }

    /// The content of a plain file of ours that others cannot read; nil if there is none, EPERM for any other.
    func readPrivate(_ name: String, atMost limit: Int) throws(FileFailure) -> [UInt8]? {
        guard let bytes = try read(name, atMost: limit) else { return nil }
        guard isPrivate(name) else { throw FileFailure(action: "use", path: path + "/" + name, code: EPERM) }
        return bytes
    }

    /// Makes a file that was not there, 0600, durably.
    func makeNew(_ bytes: [UInt8], as name: String) throws(FileFailure) {
        guard !exists(name) else { throw FileFailure(action: "make", path: path + "/" + name, code: EEXIST) }
        try write(bytes, as: name)
    }
}
