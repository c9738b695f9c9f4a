internal import CLinux
internal import Glibc

/// What `/proc` says about a process now: since it connected, it may have ended or may run another program.
public enum ProcessFacts {
    /// The path of its executable; nil if it cannot be read. Bytes that are not UTF-8 are replaced.
    public static func executable(of pid: Int32) -> String? { ExecutableLink(of: pid).text }

    public static func unit(of pid: Int32) -> String? {
        let line = text(of: pid, "cgroup")?.prefix { $0 != "\n" }
        return line?.split(separator: "/").last { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }.map(String.init)
    }

    /// The path of its control group in the unified hierarchy, or in systemd's own.
    static func controlGroup(of pid: Int32) -> String? {
        let lines = (text(of: pid, "cgroup") ?? "").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("0::") && $0 != "0::/" } ?? lines.first { $0.contains(":name=systemd:") }
        return line?.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).last.map(String.init)
    }

    static func parent(of pid: Int32) -> Int32? {
        let fields = status(of: pid)
        return fields.count > 1 ? Int32(fields[1]) : nil
    }

    /// Its real user id. The folder in `/proc` is root's for a process that refuses dumps.
    static func owner(of pid: Int32) -> UInt32? {
        let line = text(of: pid, "status")?.split(separator: "\n").first { $0.hasPrefix("Uid:") }
        return line?.split(separator: "\t").dropFirst().first.flatMap { UInt32($0) }
    }

    /// True if its session has a controlling terminal.
    static func hasTerminal(_ pid: Int32) -> Bool {
        let fields = status(of: pid)
        return fields.count > 4 && fields[4] != "0"
    }

    /// Its session, unique since boot: the number, and when its first process started if that still runs.
    static func sessionKey(of pid: Int32) -> String? {
        let fields = status(of: pid)
        guard fields.count > 3, let session = Int32(fields[3]), session > 0 else { return nil }
        return "session \(session) \(startTime(of: session) ?? 0)"
    }

    /// Its start time in clock ticks since boot. Together with the process id it identifies a process uniquely.
    public static func startTime(of pid: Int32) -> UInt64? {
        let fields = status(of: pid)
        return fields.count > 19 ? UInt64(fields[19]) : nil
    }

    /// The time since boot in the unit of ``startTime(of:)``.
    static var ticksSinceBoot: UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * ticksPerSecond + UInt64(time.tv_nsec) * ticksPerSecond / 1_000_000_000
    }

    private static let ticksPerSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))

    /// The start time of the first process of its session, as of ``startTime(of:)``; nil if that has ended.
    public static func sessionStart(of pid: Int32) -> UInt64? {
        let fields = status(of: pid)
        return fields.count > 3 ? Int32(fields[3]).flatMap(startTime) : nil
    }

    /// Its session and parent, which processes of one program share. Process 1 does not count: it adopts orphans.
    public static func groups(of pid: Int32) -> Set<String> {
        let fields = status(of: pid)
        guard fields.count > 3, let parent = Int(fields[1]), let session = Int(fields[3]) else { return [] }
        return Set((parent > 1 ? ["parent \(parent)"] : []) + (session > 0 ? ["session \(session)"] : []))
    }

    /// The fields of `stat` from the third one on, after the name in parentheses, which may itself contain parentheses.
    private static func status(of pid: Int32) -> [Substring] {
        guard let text = text(of: pid, "stat"), let end = text.lastIndex(of: ")") else { return [] }
        return text[text.index(after: end)...].split(separator: " ")
    }

    private static func text(of pid: Int32, _ file: String) -> String? {
        guard pid > 0 else { return nil }
        let descriptor = unsafe open("/proc/\(pid)/\(file)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}

struct ExecutableLink: Sendable {
    private let link: [CChar]
    private let path: [UInt8]
    /// A longer path counts as changed each time it is compared.
    private static let mostCompared = 1_000

    init(of pid: Int32) {
        link = pid > 0 ? Array("/proc/\(pid)/exe".utf8CString) : []
        guard !link.isEmpty else {
            path = []
            return
        }
        let link = link
        // Copied at its length: the paths of many processes are kept.
        path = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4_096) { buffer in
            let count = unsafe ExecutableLink.read(link, into: buffer)
            return unsafe Array(buffer[..<count])
        }
    }

    var text: String? { path.isEmpty ? nil : String(decoding: path, as: UTF8.self) }

    /// True if the process with this id runs this executable now: one system call for each connection, no allocation.
    var isCurrent: Bool {
        guard !link.isEmpty else { return true }
        let most = ExecutableLink.mostCompared
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: most + 1) { buffer in
            let count = unsafe ExecutableLink.read(link, into: buffer)
            return unsafe count <= most && buffer[..<count].elementsEqual(path)
        }
    }

    /// False if this process finds another file at the path, since the process has mounts of its own, or cannot find
    /// out without waiting for a file system. True if there is no such file here. Attack: a program on a file system of
    /// its own that does not answer (FUSE) would stop every client.
    var isFoundHere: Bool {
        guard !path.isEmpty else { return true }
        return unsafe clinux_is_same_file(link, path.map { CChar(bitPattern: $0) } + [0])
    }

    private static func read(_ link: [CChar], into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe max(0, readlink(link, start, buffer.count))
    }
}
