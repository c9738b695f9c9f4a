// The lock file says who holds the lock. The kernel's lock excludes other processes on the same kernel. The lease
// excludes other hosts that share the home directory, where the kernel's lock may have no effect.

internal import Glibc
internal import StrictJSON

/// The holder of the state directory, as written in the lock file.
struct StateLease: Sendable, Equatable {
    /// The lease is renewed every 30 s. After this time, four missed renewals, the holder is taken to be gone.
    static let lifetime: Duration = .seconds(120)
    /// The file has a fixed length and is written in one call, so that no reader sees a part of it.
    static let size = 512

    /// The host name, see ``name(ofHost:boot:)``.
    var host: String
    /// The boot id, which differs after each boot.
    var boot: String
    var pid: Int
    /// The start time of the process in clock ticks since boot. It distinguishes the process from a later one with its
    /// id.
    var start: Int

    var holder: StateHolder { StateHolder(host: host, pid: pid) }

    /// The lease of this process.
    static func ours() -> StateLease {
        var name = utsname()
        unsafe uname(&name)
        let bytes = unsafe withUnsafeBytes(of: &name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        let boot = readText("/proc/sys/kernel/random/boot_id").filter { $0.isHexDigit || $0 == "-" }
        return StateLease(
            host: StateLease.name(ofHost: bytes, boot: boot), boot: boot, pid: Int(getpid()),
            start: startTime(of: Int(getpid())) ?? 0)
    }

    /// A host's name in the form that ``init(parsing:)`` accepts: the kernel takes any bytes for a name. What is not
    /// printable ASCII is escaped as in URLs. A host without a name is named by its boot, so that it is not taken for
    /// another host without a name.
    static func name(ofHost bytes: [UInt8], boot: String) -> String {
        guard !bytes.isEmpty else { return "unnamed-\(boot)" }
        let digits = Array("0123456789ABCDEF".utf8)
        let escaped = bytes.prefix(64).flatMap { byte in
            StateLease.isPrintable(byte) && byte != 0x25
                ? [byte] : [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    /// True if the process of the lease is running. Meaningful only on the kernel that the lease names.
    var isAlive: Bool { StateLease.startTime(of: pid) == start }

    /// The content of the lock file.
    func serialized() -> [UInt8] {
        let object: JSON = [
            "host": .string(host), "boot": .string(boot), "pid": .integer(pid), "start": .integer(start),
        ]
        var bytes = object.serialized()
        bytes += Array(repeating: 0x20, count: max(0, StateLease.size - bytes.count - 1))
        bytes.append(0x0A)
        return bytes
    }

    init(host: String, boot: String, pid: Int, start: Int) {
        self.host = host
        self.boot = boot
        self.pid = pid
        self.start = start
    }

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
        let text = readText("/proc/\(pid)/stat")
        guard let close = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        return fields.count > 19 ? Int(fields[19]) : nil
    }

    private static func readText(_ path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        return String(decoding: FileBytes.read(descriptor, atMost: 4_096), as: UTF8.self)
    }
}

/// Reads and writes small files as a whole.
enum FileBytes {
    /// Reads from the start of the file.
    static func read(_ descriptor: Int32, atMost limit: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: limit)
        var filled = 0
        while filled < limit {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress.map { unsafe $0 + filled }, limit - filled, filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            filled += count
        }
        return Array(bytes[..<filled])
    }

    /// Writes at the start of the file. Returns 0 or an errno.
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
