// The lock file says who holds the lock. The kernel's lock decides among processes that share a kernel; the lease
// decides between hosts that share a home directory, where the kernel's lock may not reach.

internal import Glibc
internal import StrictJSON

/// Who holds the state directory, as the lock file names it.
struct StateLease: Sendable, Equatable {
    /// Renewed every 30 s by its holder. Longer than four renewals and a server's delay: nobody is there any more.
    static let lifetime: Duration = .seconds(120)
    /// Written in one piece of a fixed length, so that no reader ever sees half of it.
    static let size = 512

    /// The name of the machine.
    var host: String
    /// Differs with every start of a kernel.
    var boot: String
    var pid: Int
    /// When the process started, in clock ticks since boot: tells it from a later one with the same number.
    var start: Int

    var holder: StateHolder { StateHolder(host: host, pid: pid) }

    /// This process.
    static func ours() -> StateLease {
        var name = utsname()
        unsafe uname(&name)
        let host = unsafe withUnsafeBytes(of: &name.nodename) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        let boot = readText("/proc/sys/kernel/random/boot_id").filter { $0.isHexDigit || $0 == "-" }
        return StateLease(host: host, boot: boot, pid: Int(getpid()), start: startTime(of: Int(getpid())) ?? 0)
    }

    /// True if the process of the lease is alive. Only meaningful on the kernel that the lease names.
    var isAlive: Bool { StateLease.startTime(of: pid) == start }

    /// The lock file's content.
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

    /// Nil for anything that is not a lease: a file that was just made, one whose holder has left, or garbage.
    init?(parsing bytes: [UInt8]) {
        guard let object = try? JSON(parsing: bytes), let host = object["host"]?.string,
            let boot = object["boot"]?.string, let pid = object["pid"]?.integer, let start = object["start"]?.integer
        else { return nil }
        // The text ends in messages: nothing but the characters of names.
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), pid > 0 else {
            return nil
        }
        self.init(host: host, boot: boot, pid: pid, start: start)
    }

    /// Field 22 of `/proc/PID/stat`; nil if there is no such process.
    static func startTime(of pid: Int) -> Int? {
        // The name, in parentheses, may hold spaces and parentheses itself: count from the last one.
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

/// Reading and writing small files whole.
enum FileBytes {
    /// From the start of the file.
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

    /// At the start of the file. 0, or an errno.
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
            // Nothing written and no reason given: not asked a second time.
            guard count > 0 else { return EIO }
            written += count
        }
        return 0
    }
}
