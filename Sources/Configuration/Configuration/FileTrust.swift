internal import Glibc
internal import RingbackBase

/// Decides which files may be used as configuration: those that only the user and root can have written. Attack: a file
/// that another user can change could name another issuer for an account. The directory is checked too, because its
/// owner can replace the file. For a symbolic link its target is checked as well.
struct FileTrust {
    enum Failure: Error, Equatable {
        case missing
        /// The message is the end of a sentence that begins with the file. The path is set if other users have too much
        /// access to it.
        case refused(String, UnsafePath? = nil)
    }

    struct Content {
        let bytes: [UInt8]
        /// True if only its owner can read it.
        let isPrivate: Bool
    }

    let user: UInt32

    /// The content of a file that a key of the configuration names, see ``read(_:isSecret:maxSize:)``.
    func bytes(of path: String, isSecret: Bool = false, maxSize: Int) throws(Mistake) -> [UInt8] {
        do throws(Failure) { return try read(path, isSecret: isSecret, maxSize: maxSize).bytes } catch {
            let file = "the file \(FileTrust.quoted(path))"
            switch error {
            case .missing: throw Mistake("\(file) does not exist")
            case .refused(let reason, let unsafe): throw Mistake("\(file) \(reason)", unsafe.map { .unsafe($0) })
            }
        }
    }

    /// Reads a file of at most `maxSize` bytes. A secret file must not be readable by other users, unless it belongs to
    /// root.
    func read(_ path: String, isSecret: Bool = false, maxSize: Int) throws(Failure) -> Content {
        try checkDirectory(of: path)
        // Race: the file could be replaced between check and reading, so the opened descriptor is checked and read.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            var link = stat()
            // A dangling link is an error, because the user intended a file here.
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
            throw .refused("holds a secret and can be read by others", UnsafePath(path, .readableByOthers))
        }
        if let target = FileTrust.target(of: path), target != path { try checkDirectory(of: target) }
        return Content(bytes: try content(of: descriptor, maxSize), isPrivate: isPrivate)
    }

    /// The paths of a directory's files whose names end with `ending`, sorted by name. Empty without the directory.
    func files(in directory: String, ending: String) throws(Failure) -> [String] {
        guard let stream = unsafe opendir(directory) else {
            let code = errno
            if code == ENOENT { return [] }
            throw .refused("cannot be read: \(FileTrust.words(code))")
        }
        do throws(Directory.Failure) {
            return unsafe try Directory.names(closing: stream).filter { $0.hasSuffix(ending) && !$0.hasPrefix(".") }
                .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(directory)/\($0)" }
        } catch {
            throw .refused("cannot be read: \(FileTrust.words(error.code))")
        }
    }

    private func checkDirectory(of path: String) throws(Failure) {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            let code = errno
            throw code == ENOENT ? .missing : .refused("cannot be read: \(FileTrust.words(code))")
        }
        // On a read-only mount nobody can write, whatever the mode says (a Kubernetes volume has mode 1777).
        if status.st_uid == 0, FileTrust.isReadOnly(directory) { return }
        do throws(Failure) {
            try check(status, directory, prefix: "is in the directory \(FileTrust.quoted(directory)), which ")
        } catch {
            // A directory like /tmp is open to all for a reason, and root's is not the user's to change.
            guard status.st_mode & S_ISVTX != 0 || status.st_uid == 0 && user != 0, case .refused(let reason, _) = error
            else {
                throw error
            }
            throw .refused("\(reason): move the file to a directory that only you can write")
        }
    }

    private static func isReadOnly(_ directory: String) -> Bool {
        var status = statvfs()
        return unsafe statvfs(directory, &status) == 0 && status.f_flag & UInt(ST_RDONLY) != 0
    }

    private func check(_ status: stat, _ path: String, prefix: String = "") throws(Failure) {
        guard status.st_uid == user || status.st_uid == 0 else {
            throw .refused(
                "\(prefix)belongs to uid \(status.st_uid), neither to you (uid \(user)) nor to root",
                UnsafePath(path, .foreignOwner))
        }
        guard status.st_mode & 0o022 == 0 else {
            throw .refused("\(prefix)can be written by others", UnsafePath(path, .writableByOthers))
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

    /// The path with all links resolved; nil if that fails.
    private static func target(of path: String) -> String? {
        guard let resolved = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// The path quoted as for a shell, so that a message shows where it begins and ends.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { $0.isLetterOrDigit || "/._-+@%:,".utf8.contains($0) }
        return isPlain ? path : "'\(path.replacing("'", with: "'\\''"))'"
    }

    private static func words(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
