import Glibc

enum Processes {
    /// Every process that this one has started, and what those have started.
    static func descendants(of pid: pid_t) -> [pid_t] {
        let all = FileTree.names(in: "/proc").compactMap { pid_t($0) }
        let parents = Dictionary(all.map { ($0, parent(of: $0)) }) { first, _ in first }
        var found: [pid_t] = []
        var rest = [pid]
        while let next = rest.popLast() {
            let children = all.filter { parents[$0] == next }
            found += children
            rest += children
        }
        return found
    }

    /// Its arguments, each followed by NUL; nil if it is gone.
    static func arguments(of pid: pid_t) -> String? { FileTree.text(of: "/proc/\(pid)/cmdline") }

    /// The environment that it was started with; nil if it is gone, or does not show it.
    static func environment(of pid: pid_t) -> String? { FileTree.text(of: "/proc/\(pid)/environ") }

    /// The processor time that it has used, in hundredths of a second (see `sysconf(_SC_CLK_TCK)`); nil if it is gone.
    static func ticks(of pid: pid_t) -> Int? {
        let fields = status(of: pid)
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { return nil }
        return user + system
    }

    /// Bytes of anonymous memory that are resident; nil if it is gone.
    static func anonymousMemory(of pid: pid_t) -> Int? {
        let lines = (FileTree.text(of: "/proc/\(pid)/status") ?? "").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("RssAnon:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 * 1_024 }
    }

    private static func parent(of pid: pid_t) -> pid_t? {
        let fields = status(of: pid)
        return fields.count > 1 ? pid_t(fields[1]) : nil
    }

    /// The fields of `/proc/PID/stat` from the state on.
    private static func status(of pid: pid_t) -> [Substring] {
        // The name is in parentheses and may hold anything, parentheses too.
        guard let text = FileTree.text(of: "/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return [] }
        return text[text.index(after: end)...].dropFirst().split(separator: " ")
    }
}

/// The kernel's table of listening TCP sockets.
enum ListeningPorts {
    /// The local addresses, as `/proc/net/tcp` writes them, that somebody listens at with this port.
    static func addresses(of port: Int) -> [String] {
        ["tcp", "tcp6"].flatMap { table -> [String] in
            let lines = (FileTree.text(of: "/proc/net/\(table)") ?? "").split(separator: "\n").dropFirst()
            return lines.compactMap { line in
                let fields = line.split(separator: " ")
                guard fields.count > 3, fields[3] == "0A" else { return nil }
                let parts = fields[1].split(separator: ":")
                return parts.count == 2 && Int(parts[1], radix: 16) == port ? String(parts[0]) : nil
            }
        }
    }
}
