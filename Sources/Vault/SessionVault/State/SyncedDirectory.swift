internal import Glibc
internal import RingbackBase

/// A directory whose files are replaced durably: when a method returns, a power failure does not undo its change. If
/// the process is killed during it, the old file is kept. A live file is never opened for writing: a new one is written
/// beside it, synced and renamed over it, and then the directory is synced. Names are relative to a descriptor, so
/// replacing a parent directory has no effect.
final class SyncedDirectory: Sendable {
    static let temporarySuffix = ".tmp"
    let path: String
    private let descriptor: Int32

    init(opening path: String, followsLink: Bool = false) throws(FileFailure) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (followsLink ? 0 : O_NOFOLLOW)
        let descriptor = unsafe Glibc.open(path, flags)
        let code = errno
        guard descriptor >= 0 else { throw FileFailure(action: .open, path: path, code: code) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// If it is missing, it is created (0700) if `isMade` is true, otherwise the result is nil.
    func subdirectory(_ name: String, isMade: Bool) throws(FileFailure) -> SyncedDirectory? {
        if isMade {
            if unsafe mkdirat(descriptor, name, 0o700) == 0 {
                try sync()
            } else {
                let code = errno
                // On a read-only file system `mkdir` of an existing directory fails with another error than EEXIST.
                guard code == EEXIST || exists(name) else { throw failure(.make, name, code) }
                // A new subdirectory is synced before files are stored in it, so one with files needs no sync, which
                // would also write unrelated recent changes.
                if (try? names(in: name))?.isEmpty != false { try? sync() }
            }
        }
        do throws(FileFailure) {
            return try SyncedDirectory(opening: path + "/" + name)
        } catch {
            guard error.code == ENOENT, !isMade else { throw error }
            return nil
        }
    }

    /// Unsorted.
    func names() throws(FileFailure) -> [String] { try names(in: ".") }

    private func names(in folder: String) throws(FileFailure) -> [String] {
        let copy = openat(folder, O_RDONLY | O_DIRECTORY)
        let code = errno
        guard copy >= 0 else { throw failure(.read, folder, code) }
        guard let stream = unsafe fdopendir(copy) else {
            let code = errno
            close(copy)
            throw failure(.read, folder, code)
        }
        do throws(Directory.Failure) {
            return try unsafe Directory.names(closing: stream)
        } catch {
            throw failure(.read, folder, error.code)
        }
    }

    /// Of a larger file the first `limit` + 1 bytes; nil if there is no file.
    func read(_ name: String, atMost limit: Int) throws(FileFailure) -> [UInt8]? {
        // O_NONBLOCK, so that opening a pipe does not block.
        let file = openat(name, O_RDONLY | O_NONBLOCK)
        let code = errno
        guard file >= 0 else {
            guard code == ENOENT else { throw failure(.read, name, code) }
            return nil
        }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0 else { throw failure(.read, name, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw failure(.read, name, EISDIR) }
        let found = FileBytes.contents(file, atMost: min(max(0, Int(status.st_size)), limit + 1))
        guard found.code == 0 else { throw failure(.read, name, found.code) }
        return found.bytes
    }

    /// Also true if that cannot be determined.
    func exists(_ name: String) -> Bool {
        unsafe faccessat(descriptor, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT
    }

    /// In bytes; 0 if there is no file.
    func size(_ name: String) -> Int { status(name).map { Int($0.st_size) } ?? 0 }

    /// 0 if there is no file.
    func inode(_ name: String) -> UInt64 { status(name).map { UInt64($0.st_ino) } ?? 0 }

    /// True if it (`.` is the directory itself) belongs to us and is closed to others.
    func isPrivate(_ name: String) -> Bool {
        status(name).map { $0.st_uid == geteuid() && $0.st_mode & 0o077 == 0 } ?? false
    }

    private func status(_ name: String) -> stat? {
        var status = stat()
        return unsafe fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// Replaces the file or creates it, durably. If the process is killed, the file has the old content or the new one;
    /// a power failure may undo a change that is not synced.
    func write(_ bytes: [UInt8], as name: String, isSynced: Bool = true) throws(FileFailure) {
        let temporary = name + SyncedDirectory.temporarySuffix
        let file = try create(temporary, for: name)
        defer { close(file) }
        do throws(FileFailure) {
            try write(bytes, to: file, name, isSynced: isSynced)
            try move(temporary, to: name, as: .write)
        } catch {
            _ = unsafe unlinkat(descriptor, temporary, 0)
            throw error
        }
        if isSynced { try syncAfter(.write, name) }
    }

    /// An existing file keeps its content. If it throws, no new file is left.
    func reserve(_ size: Int, as name: String) throws(FileFailure) {
        let existing = openat(name, O_RDWR)
        if existing >= 0 {
            defer { close(existing) }
            return try allocate(size, existing, name)
        }
        let file = try create(name, for: name)
        defer { close(file) }
        do throws(FileFailure) {
            try allocate(size, file, name)
            try sync()
        } catch {
            _ = unsafe unlinkat(descriptor, name, 0)
            _ = try? sync()
            throw FileFailure(action: .makeRoom, path: error.path, code: error.code)
        }
    }

    /// Writes into the reserved file and renames it. False if there is none. If it throws, it still exists, with
    /// undefined content.
    func fill(_ reserved: String, with bytes: [UInt8], as name: String) throws(FileFailure) -> Bool {
        let file = openat(reserved, O_RDWR)
        let code = errno
        guard file >= 0 else {
            guard code == ENOENT else { throw failure(.write, reserved, code) }
            return false
        }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0 else { throw failure(.write, reserved, errno) }
        // Truncated before it is written, its content is complete after the last byte, and no new blocks are needed.
        if Int(status.st_size) > bytes.count {
            guard ftruncate(file, bytes.count) == 0 else { throw failure(.write, reserved, errno) }
        }
        try write(bytes, to: file, reserved)
        try move(reserved, to: name, as: .write)
        try syncAfter(.write, name)
        return true
    }

    func syncFile(_ name: String) throws(FileFailure) {
        let file = openat(name, O_RDWR)
        let code = errno
        guard file >= 0 else { throw failure(.sync, name, code) }
        defer { close(file) }
        try flush(file, name)
    }

    /// Durable after ``sync()``.
    func move(_ name: String, to other: String, as action: FileFailure.Action = .move) throws(FileFailure) {
        guard unsafe renameat(descriptor, name, descriptor, other) == 0 else { throw failure(action, other, errno) }
    }

    /// Durable after ``sync()``. False if there was none.
    @discardableResult func remove(_ name: String) throws(FileFailure) -> Bool {
        guard unsafe unlinkat(descriptor, name, 0) != 0 else { return true }
        let code = errno
        guard code == ENOENT else { throw failure(.remove, name, code) }
        return false
    }

    /// Makes created, renamed and removed entries durable.
    func sync() throws(FileFailure) { try flush(descriptor, ".") }

    private func openat(_ name: String, _ flags: Int32) -> Int32 {
        unsafe Glibc.openat(descriptor, name, flags | O_NOFOLLOW | O_CLOEXEC)
    }

    private func create(_ file: String, for name: String) throws(FileFailure) -> Int32 {
        for _ in 0..<2 {
            let made = unsafe Glibc.openat(
                descriptor, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            let code = errno
            if made >= 0 { return made }
            // Left by a killed process: this one holds the state directory's lock.
            guard code == EEXIST, unsafe unlinkat(descriptor, file, 0) == 0 else { throw failure(.write, name, code) }
        }
        throw failure(.write, name, EEXIST)
    }

    private func allocate(_ size: Int, _ file: Int32, _ name: String) throws(FileFailure) {
        var code: Int32
        repeat { code = posix_fallocate(file, 0, size) } while code == EINTR
        guard code == 0 else { throw failure(.makeRoom, name, code) }
        try flush(file, name)
    }

    private func write(_ bytes: [UInt8], to file: Int32, _ name: String, isSynced: Bool = true) throws(FileFailure) {
        let code = FileBytes.write(bytes, to: file)
        guard code == 0 else { throw failure(.write, name, code) }
        if isSynced { try flush(file, name) }
    }

    private func flush(_ file: Int32, _ name: String) throws(FileFailure) {
        while fsync(file) != 0 {
            let code = errno
            guard code == EINTR else { throw failure(.sync, name, code) }
        }
    }

    private func syncAfter(_ action: FileFailure.Action, _ name: String) throws(FileFailure) {
        do throws(FileFailure) {
            try sync()
        } catch {
            throw FileFailure(action: action, path: path + "/" + name, code: error.code, isInDoubt: true)
        }
    }

    private func failure(_ action: FileFailure.Action, _ name: String, _ code: Int32) -> FileFailure {
        FileFailure(action: action, path: name == "." ? path : path + "/" + name, code: code)
    }
}

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

    /// Of a regular file; nil if there is none. Throws EPERM if it belongs to another user or is accessible to others.
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

/// A failed system call on a file.
public struct FileFailure: Error, Sendable, Equatable {
    public enum Action: String, Sendable, CaseIterable {
        case make, move, open, read, remove, sync, use, write
        case makeRoom = "make room in"
        case setAside = "set aside"
    }

    public let action: Action
    public let path: String
    public let code: Int32
    /// The change was made but may be undone by a power failure.
    public let isInDoubt: Bool

    public init(action: Action, path: String, code: Int32, isInDoubt: Bool = false) {
        self.action = action
        self.path = path
        self.code = code
        self.isInDoubt = isInDoubt
    }
}

extension FileFailure {
    package var sentence: String {
        let doubt = isInDoubt ? " (it is written, but may not survive a power cut)" : ""
        let reason = unsafe String(cString: strerror(code))
        return "Cannot \(action.rawValue) \(path): \(reason)\(doubt); \(advice)."
    }

    private var advice: String {
        switch code {
        case ENOSPC: "free some space on that file system"
        case EDQUOT: "free some space, or have your quota raised"
        case EROFS: "make that file system writable, or choose another state directory"
        case EACCES, EPERM: "it must be yours, directories with mode 0700 and files with 0600"
        case EIO: "the disk reports errors: look into the kernel's log and save your data"
        case EMFILE, ENFILE: "close programs that hold many files, or raise the limit"
        case ENOENT, ESTALE: "it existed before: restore it if it was moved, and restart the daemon"
        case ELOOP, EISDIR, ENOTDIR: "a file of another kind is in its place: move it away"
        default: "try again"
        }
    }
}

/// A small file in the state directory that is replaced as a whole and durably. It is read only if it belongs to the
/// user and is closed to others.
public struct StateFile: Sendable {
    private let directory: String
    private let name: String

    /// The caller holds the lock of the state directory. `name` has no slash.
    public init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    public func sibling(named name: String) -> StateFile { StateFile(directory: directory, name: name) }

    /// At most `limit` bytes; nil if the file does not exist. Throws ``VaultError/damaged(_:)`` for a file that cannot
    /// be read, is longer, or is open to others.
    public func read(atMost limit: Int) throws(VaultError) -> [UInt8]? {
        do throws(FileFailure) {
            let bytes = try SyncedDirectory(opening: directory).readPrivate(name, atMost: limit)
            guard let bytes, bytes.count > limit else { return bytes }
        } catch {
            throw .damaged(.file(error))
        }
        throw .damaged(.tooLong(path: "\(directory)/\(name)", limit: limit))
    }

    /// Durable. Creates the file with mode 0600. Throws ``VaultError/unwritable(_:)``; the old content is then kept.
    public func write(_ bytes: [UInt8]) throws(VaultError) {
        do throws(FileFailure) {
            try SyncedDirectory(opening: directory).write(bytes, as: name)
        } catch {
            throw .unwritable(.file(error))
        }
    }

    /// Renames a file with unusable content, so that the next ``write(_:)`` does not overwrite it. Returns the path.
    public func setAside() -> String? {
        guard let place = try? SyncedDirectory(opening: directory) else { return nil }
        let other = "\(name).damaged"
        guard (try? place.move(name, to: other)) != nil else { return nil }
        try? place.sync()
        return "\(directory)/\(other)"
    }
}

/// Finds the first event number of a daemon, so that numbers increase from one daemon to the next even if the clock is
/// set back. A file has the last first number.
public enum EventNumbers {
    private static let file = "events"
    /// More numbers than one daemon can use.
    static let room: UInt64 = 1 << 40
    /// The largest number after which a daemon may begin. Up to 2^53 a reader that takes numbers for doubles has them
    /// exactly.
    static let most: UInt64 = 1 << 52

    /// `now` is the wall clock in microseconds, which alone is used if the file cannot be read or written.
    public static func next(in directory: String, now: UInt64) -> UInt64 {
        guard let place = try? SyncedDirectory(opening: directory) else { return now }
        let text = (try? place.read(file, atMost: 64)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
        let written = text.flatMap { UInt64($0.filter { $0 != "\n" }) } ?? 0
        // A larger number was not written by Ringback.
        let last = written <= most ? written : 0
        let first = last > now ? last + room : now
        // Not synced: a power failure also ends every program that has seen event numbers. A sync would be the longest
        // part of a start.
        try? place.write(Array("\(first)\n".utf8), as: file, isSynced: false)
        return first
    }
}
