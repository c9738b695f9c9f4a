internal import Glibc
internal import RingbackBase
internal import Synchronization

/// The exclusive right to use a state directory, from `init` to ``release()`` or the end of the process, also for
/// daemons with different sockets. Race: if two refresh the same session, each makes the other's refresh token invalid.
/// The lock is the kernel's `flock` together with a lease in the file, see ``StateLease``.
public final class StateLock: Sendable {
    /// The interval in which ``renew()`` must be called, also on a local disk, which may be exported to other hosts.
    public static let renewalInterval: Duration = .seconds(30)
    /// Without trailing slashes.
    public let directory: String
    private let lease: StateLease
    private let state: Mutex<Descriptors?>

    private struct Descriptors {
        let directory: Int32
        let file: Int32
    }

    /// Creates the directory and its parents if they are missing (0700), checks owner and mode, and takes the lock.
    /// Does not wait. Throws ``StateLockError``: `.held` if another daemon has the lock.
    public convenience init(directory: String) throws(StateLockError) {
        try self.init(directory: directory, lease: .ours(), usesKernelLock: true)
    }

    /// For tests: with another holder's lease, or as on a file system without locks.
    init(directory given: String, lease: StateLease, usesKernelLock: Bool) throws(StateLockError) {
        let path = StateLock.withoutTrailingSlashes(given)
        let directory = try StateLock.openDirectory(path)
        do throws(StateLockError) {
            let file = try StateLock.take(path, directory, lease, usesKernelLock: usesKernelLock)
            state = Mutex(Descriptors(directory: directory, file: file))
        } catch {
            close(directory)
            throw error
        }
        self.directory = path
        self.lease = lease
    }

    deinit { release() }

    /// Must be called every ``renewalInterval``. Throws `.lost` if the lock file is gone or names another holder; the
    /// daemon must then stop.
    public func renew() throws(StateLockError) {
        let result: Result<Void, StateLockError> = state.withLock { state in
            Result { () throws(StateLockError) in
                guard let state else { throw .lost(directory: directory, holder: nil) }
                // Opened again, because over NFS only `open` fetches the current content.
                let current = StateLock.open(state.directory, O_RDONLY)
                guard current >= 0 else { throw .lost(directory: directory, holder: nil) }
                defer { close(current) }
                let found = StateLease(parsing: FileBytes.read(current, atMost: StateLease.size))
                guard found == lease, StateLock.isSameFile(current, state.file) else {
                    throw .lost(directory: directory, holder: found?.holder)
                }
                // Sets the file's time to that of the file server, which is the same for all hosts.
                guard futimens(state.file, nil) == 0 else {
                    throw .system(call: "futimens", path: directory + "/lock", errno: errno)
                }
            }
        }
        try result.get()
    }

    public func release() {
        guard let descriptors = state.withLock({ $0.take() }) else { return }
        // The file is not removed. Race: if it were, two others could each lock a different file of this name.
        let found = StateLease(parsing: FileBytes.read(descriptors.file, atMost: StateLease.size))
        if found == lease { ftruncate(descriptors.file, 0) }
        close(descriptors.file)
        close(descriptors.directory)
    }

    private static func withoutTrailingSlashes(_ path: String) -> String {
        // With a trailing slash the kernel follows a symbolic link even with O_NOFOLLOW.
        var path = path[...]
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return String(path)
    }

    private static func openDirectory(_ path: String) throws(StateLockError) -> Int32 {
        do throws(DirectoryTrust.Failure) {
            try DirectoryTrust.check(parentsOf: path)
        } catch {
            throw .untrustedParent(error)
        }
        try create(path)
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        let code = errno
        guard descriptor >= 0 else {
            throw code == ENOTDIR || code == ELOOP
                ? .notADirectory(path) : .system(call: "open", path: path, errno: code)
        }
        do throws(StateLockError) {
            var status = stat()
            guard unsafe fstat(descriptor, &status) == 0 else { throw .system(call: "fstat", path: path, errno: errno) }
            guard status.st_uid == geteuid() else { throw .foreignOwner(path: path, uid: status.st_uid) }
            guard status.st_mode & 0o077 == 0 else {
                throw .openToOthers(directory: path, mode: status.st_mode & 0o7777)
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func create(_ path: String) throws(StateLockError) {
        var end = path.startIndex
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            let part = String(path[..<end])
            // `access` first: on a read-only file system `mkdir` of an existing directory does not fail with EEXIST.
            guard unsafe access(part, F_OK) != 0, unsafe mkdir(part, 0o700) != 0 else { continue }
            let code = errno
            guard code == EEXIST else { throw .system(call: "mkdir", path: part, errno: code) }
        }
    }

    private static func take(
        _ path: String, _ directory: Int32, _ lease: StateLease, usesKernelLock: Bool
    ) throws(StateLockError) -> Int32 {
        let name = path + "/lock"
        let file = open(directory, O_RDWR | O_CREAT)
        guard file >= 0 else {
            let code = errno
            throw code == ELOOP || code == EISDIR || code == ENXIO
                ? .notAFile(name) : .system(call: "open", path: name, errno: code)
        }
        do throws(StateLockError) {
            var status = stat()
            guard unsafe fstat(file, &status) == 0 else { throw .system(call: "fstat", path: name, errno: errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile(name) }
            guard status.st_uid == geteuid() else { throw .foreignOwner(path: name, uid: status.st_uid) }
            fchmod(file, 0o600)
            let isKernelLocked = usesKernelLock ? try lock(file, path) : false
            let found = StateLease(parsing: FileBytes.read(file, atMost: StateLease.size))
            if let found, found != lease {
                let isHeld =
                    switch relation(of: found, to: lease, isKernelLocked: isKernelLocked) {
                    case .gone: false
                    case .alive: true
                    case .unknown: try isFresh(file, directory, path)
                    }
                guard !isHeld else { throw .held(directory: path, holder: found.holder) }
            }
            let code = FileBytes.write(lease.serialized(), to: file)
            guard code == 0 else { throw .system(call: "write", path: name, errno: code) }
            // Not synced: after a power failure the boot id shows that the lease is void, and a busy disk would delay
            // the start. Setting the time is cheap and makes an NFS client send the written data.
            guard futimens(file, nil) == 0 else { throw .system(call: "futimens", path: name, errno: errno) }
            return file
        } catch {
            close(file)
            throw error
        }
    }

    /// Does not block and follows no link: a pipe or a device in place of the lock file must not stop the daemon.
    private static func open(_ directory: Int32, _ flags: Int32) -> Int32 {
        unsafe openat(directory, "lock", flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    }

    /// True if the kernel's lock was taken; false if the file system has no locks.
    private static func lock(_ file: Int32, _ path: String) throws(StateLockError) -> Bool {
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            switch code {
            case EINTR: continue
            case EWOULDBLOCK:
                let found = StateLease(parsing: FileBytes.read(file, atMost: StateLease.size))
                throw .held(directory: path, holder: found?.holder)
            case ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL: return false
            default: throw .system(call: "flock", path: path + "/lock", errno: code)
            }
        }
        return true
    }

    private enum Relation {
        case gone, alive
        /// The process is on another kernel or in another container. Only the age of the lease tells if it is running.
        case unknown
    }

    private static func relation(of found: StateLease, to ours: StateLease, isKernelLocked: Bool) -> Relation {
        // The same host after a reboot: the process is gone.
        guard found.boot == ours.boot else { return found.host == ours.host ? .gone : .unknown }
        // The same kernel. Without locks, look for the process, unless it is in another container.
        if isKernelLocked { return .gone }
        return found.host == ours.host ? (found.isAlive ? .alive : .gone) : .unknown
    }

    /// True if the lease was renewed recently. Both times are from the file system's clock, because hosts' clocks
    /// differ.
    private static func isFresh(_ lock: Int32, _ directory: Int32, _ path: String) throws(StateLockError) -> Bool {
        let probe = "lock.clock"
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let file = unsafe openat(directory, probe, flags, 0o600)
        guard file >= 0 else { throw .system(call: "open", path: "\(path)/\(probe)", errno: errno) }
        defer {
            unsafe unlinkat(directory, probe, 0)
            close(file)
        }
        var (now, renewed) = (stat(), stat())
        guard futimens(file, nil) == 0, unsafe fstat(file, &now) == 0, unsafe fstat(lock, &renewed) == 0 else {
            throw .system(call: "futimens", path: "\(path)/\(probe)", errno: errno)
        }
        let age = Duration.seconds(now.st_mtim.tv_sec - renewed.st_mtim.tv_sec)
        // A time far in the future was written before the clock was set back, and was not renewed since.
        return age > .zero - StateLease.lifetime && age < StateLease.lifetime
    }

    private static func isSameFile(_ left: Int32, _ right: Int32) -> Bool {
        var (first, second) = (stat(), stat())
        guard unsafe fstat(left, &first) == 0, unsafe fstat(right, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}

/// The holder of the state directory, as written in the lock file. The lease excludes other hosts that share the home
/// directory, where the kernel's lock may have no effect.
struct StateLease: Sendable, Equatable {
    /// The lease is renewed every 30 s. After this time, four missed renewals, the holder is taken to be gone.
    static let lifetime: Duration = .seconds(120)
    /// The file has a fixed length and is written in one call, so that no reader sees a part of it.
    static let size = 512
    /// See ``name(ofHost:boot:)``.
    var host: String
    /// Differs after each boot.
    var boot: String
    var pid: Int
    /// In clock ticks since boot. It distinguishes the process from a later one with its id.
    var start: Int
    var holder: StateHolder { StateHolder(host: host, pid: pid) }

    static func ours() -> StateLease {
        var name = utsname()
        unsafe uname(&name)
        let bytes = unsafe withUnsafeBytes(of: &name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        let boot = FileBytes.text(of: "/proc/sys/kernel/random/boot_id").filter { $0.isHexDigit || $0 == "-" }
        return StateLease(
            host: StateLease.name(ofHost: bytes, boot: boot), boot: boot, pid: Int(getpid()),
            start: startTime(of: Int(getpid())) ?? 0)
    }

    /// The kernel takes any bytes for a name: what is not printable ASCII is escaped as in URLs. A host without a name
    /// is named by its boot, so that it is not taken for another one.
    static func name(ofHost bytes: [UInt8], boot: String) -> String {
        guard !bytes.isEmpty else { return "unnamed-\(boot)" }
        let escaped = bytes.prefix(64).flatMap { byte in
            StateLease.isPrintable(byte) && byte != 0x25 ? [byte] : byte.percentEscape
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    /// Meaningful only on the kernel that the lease names.
    var isAlive: Bool { StateLease.startTime(of: pid) == start }

    func serialized() -> [UInt8] {
        let object: JSON = [
            "host": .string(host), "boot": .string(boot), "pid": .integer(pid), "start": .integer(start),
        ]
        var bytes = object.serialized()
        bytes += Array(repeating: 0x20, count: max(0, StateLease.size - bytes.count - 1))
        bytes.append(0x0A)
        return bytes
    }
}

extension StateLease {
    /// Nil if the content is not a lease: the file is new, its holder has released the lock, or the file is damaged.
    init?(parsing bytes: [UInt8]) {
        guard let object = try? JSON(parsing: bytes), let host = object["host"]?.string,
            let boot = object["boot"]?.string, let pid = object["pid"]?.integer, let start = object["start"]?.integer
        else { return nil }
        // The host name appears in messages, so only printable ASCII is accepted.
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy(StateLease.isPrintable), pid > 0 else {
            return nil
        }
        self.init(host: host, boot: boot, pid: pid, start: start)
    }

    /// Field 22 of `/proc/PID/stat`; nil if there is no such process.
    static func startTime(of pid: Int) -> Int? {
        // The second field is the name in parentheses, which may itself contain parentheses. Count from the last one.
        let text = FileBytes.text(of: "/proc/\(pid)/stat")
        guard let close = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        return fields.count > 19 ? Int(fields[19]) : nil
    }
}

/// Small files as a whole.
enum FileBytes {
    /// The bytes from the start of the file, as far as they can be read.
    static func read(_ descriptor: Int32, atMost limit: Int) -> [UInt8] { contents(descriptor, atMost: limit).bytes }

    /// The first bytes; empty if the file cannot be opened.
    static func text(of path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        return String(decoding: read(descriptor, atMost: 4_096), as: UTF8.self)
    }

    /// From the start of the file. The code is 0 or the errno that ended the reading.
    static func contents(_ descriptor: Int32, atMost limit: Int) -> (bytes: [UInt8], code: Int32) {
        var bytes = [UInt8](repeating: 0, count: limit)
        var (filled, code): (Int, Int32) = (0, 0)
        while filled < limit {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress.map { unsafe $0 + filled }, limit - filled, filled)
            }
            code = count < 0 ? errno : 0
            if code == EINTR { continue }
            guard count > 0 else { break }
            filled += count
        }
        bytes.removeLast(limit - filled)
        return (bytes, code)
    }

    /// At the start of the file. Returns 0 or an errno.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe pwrite(
                    descriptor, buffer.baseAddress.map { unsafe $0 + written }, bytes.count - written, written)
            }
            if count < 0 {
                let code = errno
                guard code == EINTR else { return code }
                continue
            }
            // A write of 0 bytes without an error is not repeated.
            guard count > 0 else { return EIO }
            written += count
        }
        return 0
    }
}

/// The daemon that holds a state directory.
public struct StateHolder: Sendable, Equatable {
    public let host: String
    public let pid: Int
}

/// Why a state directory cannot be used.
public enum StateLockError: Error, Sendable, Equatable {
    /// Another daemon holds the directory; `holder` is nil if the lock file does not name it.
    case held(directory: String, holder: StateHolder?)
    /// Another daemon has taken the lock of this daemon, or the lock file was removed. The daemon must stop.
    case lost(directory: String, holder: StateHolder?)
    /// The path is a symbolic link or not a directory.
    case notADirectory(String)
    /// The directory or the lock file belongs to another user.
    case foreignOwner(path: String, uid: UInt32)
    /// Other users may enter the directory; `mode` has the permission bits.
    case openToOthers(directory: String, mode: UInt32)
    /// Other users control a directory above it.
    case untrustedParent(DirectoryTrust.Failure)
    /// The lock file is not a regular file.
    case notAFile(String)
    case system(call: String, path: String, errno: Int32)
}
