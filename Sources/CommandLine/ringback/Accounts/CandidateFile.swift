import Glibc
import RingbackClient
import Terminal

/// A file that is written beside another one, checked, and then takes its name.
struct CandidateFile {
    let original: String
    let path: String

    init(for original: String) {
        self.original = original
        let (folder, name) = CandidateFile.parts(of: original)
        // No `.toml` at the end: a daemon that reloads just now must not read it.
        path = "\(folder)/.\(name).\(getpid())"
    }

    /// Creates the file. Other users have no access to it.
    func write(_ bytes: [UInt8]) throws(RingbackError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw CandidateFile.failure("write", path) }
        defer { close(file) }
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else {
            let failure = CandidateFile.failure("write", path)
            discard()
            throw failure
        }
    }

    /// Gives the file the name of the original, durably.
    ///
    /// - Parameter replaces: a file of that name may be there already, and is replaced.
    /// - Parameter mode: the file's new mode; nil keeps the mode with which it was written.
    func keep(replacing replaces: Bool, mode: mode_t? = nil) throws(RingbackError) {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw CandidateFile.failure("read", path) }
        defer { close(file) }
        guard mode.map({ fchmod(file, $0) == 0 }) ?? true, fsync(file) == 0 else {
            throw CandidateFile.failure("write", path)
        }
        // A link where nothing may be replaced, since a rename would replace it.
        let result = unsafe replaces ? rename(path, original) : link(path, original)
        guard result == 0 else { throw CandidateFile.failure(replaces ? "replace" : "write", original) }
        CandidateFile.syncFolder(of: original)
    }

    func discard() { unsafe unlink(path) }

    /// Syncs the file's directory, so that a rename or a removal is durable.
    static func syncFolder(of path: String) {
        let folder = parts(of: path).folder
        let descriptor = unsafe open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// The error of the last system call on a file, from `errno`.
    static func failure(_ verb: String, _ what: String) -> RingbackError {
        let reason = unsafe String(cString: strerror(errno))
        return RingbackError(.systemError, "Cannot \(verb) \(Sanitizer.line(what, limit: 600)): \(reason).")
    }

    private static func parts(of path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
