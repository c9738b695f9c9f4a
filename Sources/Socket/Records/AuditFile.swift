internal import Glibc
internal import RingbackBase

/// The file of the audit log. Lines are appended and never rewritten: `audit.jsonl` is the current file,
/// `audit.jsonl.1` the previous one. It is opened for each batch of lines, so that a moved file or a full disk is
/// noticed. It is not synced: a power failure may lose the last seconds. Used on one queue only.
struct AuditFile {
    struct Failure: Error, Equatable {
        let call: String
        let errno: Int32
        /// The bytes that were written before the failure.
        var written = 0
    }
    let path: String
    let maxSize: Int
    var previousPath: String { path + ".1" }

    /// The time of the last write in Unix seconds; 0 if the file does not exist.
    var changedAt: Int {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mtim.tv_sec : 0
    }

    /// Appends complete lines, after a line end if the last line is incomplete (after a crash or on a full disk).
    func append(_ lines: [[UInt8]]) throws(Failure) {
        var descriptor = try open()
        defer { close(descriptor) }
        var size = try check(descriptor)
        let bytes = Array(lines.joined())
        if size > 0, size + bytes.count > maxSize {
            guard unsafe rename(path, previousPath) == 0 else { throw Failure(call: "rename", errno: errno) }
            let fresh = try open()
            close(descriptor)
            descriptor = fresh
            size = try check(descriptor)
        }
        if size > 0, try lastByte(descriptor, at: size - 1) != UInt8(ascii: "\n") {
            try write([UInt8(ascii: "\n")], to: descriptor)
        }
        try write(bytes, to: descriptor)
    }

    func contents() -> [UInt8] {
        // Only one daemon writes, so a file exceeds its limit by at most one batch.
        read(previousPath, limit: maxSize * 2) + read(path, limit: maxSize * 2)
    }

    private func open() throws(Failure) -> Int32 {
        let flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let descriptor = unsafe Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw Failure(call: "open", errno: errno) }
        return descriptor
    }

    /// The size of the opened file. Throws unless it is a regular file of this user. Corrects other modes than 0600.
    private func check(_ descriptor: Int32) throws(Failure) -> Int {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw Failure(call: "fstat", errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            throw Failure(call: "open", errno: EPERM)
        }
        if status.st_mode & 0o777 != 0o600, fchmod(descriptor, 0o600) != 0 {
            throw Failure(call: "fchmod", errno: errno)
        }
        return Int(status.st_size)
    }

    private func lastByte(_ descriptor: Int32, at offset: Int) throws(Failure) -> UInt8 {
        var byte: UInt8 = 0
        let count = unsafe pread(descriptor, &byte, 1, off_t(offset))
        guard count >= 0 else { throw Failure(call: "read", errno: errno) }
        return count == 1 ? byte : UInt8(ascii: "\n")
    }

    private func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        let (written, code) = Descriptor.write(bytes, to: descriptor)
        guard code == 0 else { throw Failure(call: "write", errno: code, written: written) }
    }

    private func read(_ path: String, limit: Int) -> [UInt8] {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        return Descriptor.read(descriptor, atMost: limit).bytes
    }
}

/// The files of the audit log: the owner's own, and one for each restricted socket. A program at a restricted socket
/// can fill only that socket's file and cannot displace other entries. Used on one queue only.
struct AuditFiles {
    struct Name: Hashable, Comparable {
        /// The restricted socket; nil for the owner's own file.
        let socket: String?
        init(_ socket: String?) { self.socket = socket }
        static func < (left: Name, right: Name) -> Bool { (left.socket ?? "") < (right.socket ?? "") }
    }

    /// The owner's file, `audit.jsonl`. The other files are in the same directory: `audit-NAME.jsonl`.
    let path: String
    let maxSize: Int
    /// The maximum number of files of restricted sockets. Beyond it the file with the oldest write is deleted.
    static let most = 64
    /// A restricted socket's file is smaller than the owner's by this factor.
    static let share = 16

    subscript(name: Name) -> AuditFile {
        guard let socket = name.socket else { return AuditFile(path: path, maxSize: maxSize) }
        return AuditFile(path: "\(stem)-\(socket).jsonl", maxSize: maxSize / AuditFiles.share)
    }

    func append(_ lines: [[UInt8]], to name: Name) throws(AuditFile.Failure) {
        let file = self[name]
        let isNew = unsafe name.socket != nil && access(file.path, F_OK) != 0
        try file.append(lines)
        if isNew { forgetOldest() }
    }

    var names: [Name] { [Name(nil)] + sockets.map { Name($0) }.sorted() }
    private var stem: String { path.hasSuffix(".jsonl") ? String(path.dropLast(6)) : path }

    private var sockets: [String] {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { String(path[..<$0]) } ?? "."
        let prefix = stem[(slash.map { path.index(after: $0) } ?? path.startIndex)...] + "-"
        return Directory.names(in: directory).filter { $0.hasPrefix(prefix) && $0.hasSuffix(".jsonl") }
            .map { String($0.dropFirst(prefix.count).dropLast(6)) }
    }

    private func forgetOldest() {
        let files = sockets.map { self[Name($0)] }
        guard files.count > AuditFiles.most else { return }
        for file in files.sorted(by: { $0.changedAt < $1.changedAt }).prefix(files.count - AuditFiles.most) {
            unsafe unlink(file.path)
            unsafe unlink(file.previousPath)
        }
    }
}

struct WaitingLines {
    private(set) var lines: [[UInt8]] = []
    /// The number of dropped lines that the file does not report yet.
    private(set) var unreported = 0
    var isEmpty: Bool { lines.isEmpty && unreported == 0 }

    /// Returns false if the line is dropped because there are too many.
    mutating func append(_ line: [UInt8], _ most: Int) -> Bool {
        guard lines.count < most else {
            unreported += 1
            return false
        }
        lines.append(line)
        return true
    }

    mutating func remove(_ count: Int, told: Int) {
        lines.removeFirst(min(count, lines.count))
        unreported -= told
    }
}
