internal import Glibc

/// What `/proc` tells of a process. It is true of the moment of the question: a process may have become another one
/// since it connected, or be gone.
public enum ProcessFacts {
    /// The program that it runs; nil for a process that is gone or hides it. Bytes that are not UTF-8 are repaired.
    public static func executable(of pid: Int32) -> String? {
        guard pid > 0 else { return nil }
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink("/proc/\(pid)/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }

    /// The systemd unit, by the control group's name.
    public static func unit(of pid: Int32) -> String? {
        let line = text(of: pid, "cgroup")?.prefix { $0 != "\n" }
        return line?.split(separator: "/").last { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }.map(String.init)
    }

    /// When it started, in clock ticks since boot: with the number, this is one process and no later one.
    public static func startTime(of pid: Int32) -> UInt64? {
        // The name, in parentheses, may hold spaces and parentheses; the fields after it are counted from the third.
        guard let text = text(of: pid, "stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return fields.count > 19 ? UInt64(fields[19]) : nil
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
