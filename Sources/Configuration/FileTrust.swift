internal import Glibc

/// Which files may tell us whom to trust: those that nobody but the user and root could have written.
///
/// A file that somebody else may change is somebody else's configuration: it could name another issuer for an account.
/// The directory counts too (its owner can replace the file), and where a link leads, what it leads to.
struct FileTrust {
    /// Why a file is refused, and what to do about it.
    enum Failure: Error, Equatable {
        case missing
        case refused(String)
    }

    /// The content of a file that is trusted.
    struct Content {
        let bytes: [UInt8]
        /// Nobody but its owner can read it.
        let isPrivate: Bool
    }

    /// The user whose daemon this is.
    let user: UInt32

    /// Reads a file that must not be longer than `maxSize` bytes. A secret one must be closed to others, unless root
    /// gave it (then who may read it is root's decision).
    func read(_ path: String, isSecret: Bool = false, maxSize: Int) throws(Failure) -> Content {
        try checkDirectory(of: path)
        // The file that is checked is the file that is read: what a name means can change in between.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            var link = stat()
            // Somebody meant a file to be here.
            if code == ENOENT, unsafe lstat(path, &link) == 0 {
                throw .refused("is a link to a file that does not exist")
            }
            throw code == ENOENT ? .missing : .refused("cannot be read: \(FileTrust.words(code))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .refused("cannot be read") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .refused("is not a regular file") }
        try check(status, path)
        let isPrivate = status.st_mode & 0o077 == 0
        if isSecret, status.st_mode & 0o044 != 0, status.st_uid != 0 {
            throw .refused("holds a secret and can be read by others: chmod 600 \(FileTrust.quoted(path))")
        }
        if let target = FileTrust.target(of: path), target != path { try checkDirectory(of: target) }
        return Content(bytes: try content(of: descriptor, maxSize), isPrivate: isPrivate)
    }

    /// The files with that ending in a directory, as paths sorted by name; none if there is no such directory.
    func files(in directory: String, ending: String) throws(Failure) -> [String] {
        guard let stream = unsafe opendir(directory) else {
            let code = errno
            if code == ENOENT { return [] }
            throw .refused("cannot be read: \(FileTrust.words(code))")
        }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name.hasSuffix(ending), !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(directory)/\($0)" }
    }

    private func checkDirectory(of path: String) throws(Failure) {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            let code = errno
            throw code == ENOENT ? .missing : .refused("cannot be read: \(FileTrust.words(code))")
        }
        // The platform's own mounts look open to everybody, and nobody can write there: a Kubernetes volume is 1777.
        if status.st_uid == 0, FileTrust.isReadOnly(directory) { return }
        try check(status, directory, prefix: "is in the directory \(FileTrust.quoted(directory)), which ")
    }

    /// True for a directory of a file system that is mounted read-only.
    private static func isReadOnly(_ directory: String) -> Bool {
        var status = statvfs()
        return unsafe statvfs(directory, &status) == 0 && status.f_flag & UInt(ST_RDONLY) != 0
    }

    private func check(_ status: stat, _ path: String, prefix: String = "") throws(Failure) {
        let name = FileTrust.quoted(path)
        guard status.st_uid == user || status.st_uid == 0 else {
            throw .refused("\(prefix)belongs to uid \(status.st_uid), neither you nor root: chown \(user) \(name)")
        }
        guard status.st_mode & 0o022 == 0 else {
            throw .refused("\(prefix)can be written by others: chmod go-w \(name)")
        }
    }

    private func content(of descriptor: Int32, _ maxSize: Int) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                throw .refused("cannot be read: \(FileTrust.words(code))")
            }
            if count == 0 { return bytes }
            guard bytes.count + count <= maxSize else { throw .refused("is longer than \(maxSize) bytes") }
            bytes += buffer[0..<count]
        }
    }

    /// Where all links lead.
    private static func target(of path: String) -> String? {
        guard let resolved = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// As a shell would need it: the advice is meant to be pasted.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "/._-+@%:,".utf8.contains(byte)
            }
        }
        return isPlain
            ? path : "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    private static func words(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
