// What the kernel tells of processes.

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

    private static func parent(of pid: pid_t) -> pid_t? {
        // The name is in parentheses and may hold anything, parentheses too.
        guard let text = FileTree.text(of: "/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return fields.count > 1 ? pid_t(fields[1]) : nil
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
