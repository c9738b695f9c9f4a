import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// A file is written under another name and renamed, so that no program reads a part of it.
enum Files {
    static func place(_ variable: String) -> String? {
        SocketPlace.variable(variable).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    static func home() throws(RingbackError) -> String {
        guard let home = place("HOME") else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory. Nothing was changed.")
        }
        return home
    }

    /// Under `sudo`, HOME may belong to another user. That user could not change or remove what root writes there.
    static func refuseForeignHome() throws(RingbackError) {
        var status = stat()
        guard let home = SocketPlace.variable("HOME"), unsafe stat(home, &status) == 0, status.st_uid != geteuid()
        else { return }
        throw RingbackError(
            "no_place",
            "Nothing was changed: HOME is \(home), which belongs to uid \(status.st_uid), and this runs as uid "
                + "\(geteuid()). Run it as the user whose home it is, without sudo.")
    }

    static func folder(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    static func exists(_ path: String) -> Bool { kind(of: path) != nil }

    static func isRegular(_ path: String) -> Bool { kind(of: path) == S_IFREG }

    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    static func target(of path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink(path, &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func resolved(_ path: String) throws(RingbackError) -> (path: String, mode: mode_t) {
        var status = stat()
        guard unsafe stat(path, &status) == 0, let found = unsafe realpath(path, nil) else {
            throw failure("read", path)
        }
        defer { unsafe free(found) }
        return (unsafe String(cString: found), status.st_mode & 0o777)
    }

    static func contents(of path: String) throws(RingbackError) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("read", path)
        }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw RingbackError(.systemError, "\(path) is not a regular file.")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(status.st_size))
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = unsafe read(file, &buffer, buffer.count)
            if count < 0 { throw failure("read", path) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    static func lastLines(of path: String, _ count: Int) -> [String] {
        let bytes = (try? contents(of: path)) ?? nil
        return String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n").suffix(count).map(String.init)
    }

    /// A program that runs from the old file keeps it.
    static func put(_ bytes: [UInt8], at path: String, mode: mode_t) throws(RingbackError) {
        try CandidateFile(for: path, mode: mode).put(bytes, replacing: true)
    }

    static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe write(file, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }

    static func makeDirectories(_ path: String, mode: mode_t = 0o755) throws(RingbackError) {
        var directory = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            directory += part + "/"
            guard unsafe mkdir(directory, mode) == 0 || errno == EEXIST else {
                throw failure("make the directory", directory)
            }
        }
    }

    /// A directory with mode 0700 and an unpredictable name; nil if it cannot be made there.
    static func makePrivateDirectory(in parent: String, named name: String) -> String? {
        var template = Array("\(parent)/\(name).XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { return nil }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes a directory that this program made. Symbolic links are removed, never followed.
    static func removeTree(_ path: String) {
        if unsafe unlink(path) == 0 || errno == ENOENT { return }
        for name in Directory.names(in: path) { removeTree("\(path)/\(name)") }
        unsafe rmdir(path)
    }

    static func failure(_ action: String, _ path: String) -> RingbackError {
        let reason = unsafe String(cString: strerror(errno))
        return RingbackError(.systemError, "Cannot \(action) \(Sanitizer.line(path, limit: 600)): \(reason).")
    }
}

struct CandidateFile {
    let original: String
    let path: String
    /// The original's; nil if there is none.
    private let mode: mode_t?

    init(for original: String, mode: mode_t? = nil) {
        self.original = original
        self.mode = mode
        let name = original.split(separator: "/").last ?? ""
        // No `.toml` at the end: a daemon that reloads just now must not read it.
        path = "\(original.dropLast(name.count)).\(name).\(getpid())"
    }

    /// Beside the file to which a path leads, since a rename must not replace a symbolic link.
    init(following path: String) throws(RingbackError) {
        let found = try unsafe access(path, F_OK) == 0 ? Files.resolved(path) : nil
        self.init(for: found?.path ?? path, mode: found?.mode)
    }

    func put(_ bytes: [UInt8], replacing replaces: Bool) throws(RingbackError) {
        try write(bytes)
        defer { discard() }
        try keep(replacing: replaces)
    }

    /// Other users have no access to the file.
    func write(_ bytes: [UInt8]) throws(RingbackError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Files.failure("write", path) }
        defer { close(file) }
        guard Files.writeAll(bytes, to: file), fsync(file) == 0 else {
            let failure = Files.failure("write", path)
            discard()
            throw failure
        }
    }

    func keep(replacing replaces: Bool) throws(RingbackError) {
        // In the home of a confined program another file may be in its place.
        let file = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { throw Files.failure("read", path) }
        defer { close(file) }
        guard mode.map({ fchmod(file, $0) == 0 }) ?? true, fsync(file) == 0 else {
            throw Files.failure("write", path)
        }
        // A link where nothing may be replaced, since a rename would replace it.
        let result = unsafe replaces ? rename(path, original) : link(path, original)
        guard result == 0 else { throw Files.failure(replaces ? "replace" : "write", original) }
        CandidateFile.syncFolder(of: original)
    }

    func discard() { unsafe unlink(path) }

    /// Syncs the file's directory, so that a rename or a removal is durable.
    static func syncFolder(of path: String) {
        let folder = path.contains("/") ? Files.folder(of: path) : "."
        let descriptor = unsafe open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
