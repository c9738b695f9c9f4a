import RingbackClient
import Terminal

/// How the daemon was started that runs, if no unit of systemd's started it: its command line, as the kernel shows it.
struct DaemonArguments {
    /// The program, and its arguments.
    private let words: [String]

    /// Nil if there is no such process here: the daemon may run in a container.
    init?(of pid: Int) {
        guard let bytes = (try? HomeFile.contents(of: "/proc/\(pid)/cmdline")) ?? nil else { return nil }
        words = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        guard let program = words.first, program.split(separator: "/").last == "ringbackd" else { return nil }
    }

    /// True if it belongs to a program, which starts it again when it needs it.
    var isOfProgram: Bool {
        let marks = ["--private", "--agent", "--exit-with-parent", "--credential-fd"]
        return words.contains { word in marks.contains { word == $0 || word.hasPrefix($0 + "=") } }
    }

    /// True if it means the same from every directory.
    var isAbsolute: Bool {
        let options = ["--config", "--socket", "--state"]
        var places = words.prefix(1).filter { $0.contains("/") }
        for (index, word) in words.enumerated() {
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            guard let option = parts.first, options.contains(option) else { continue }
            places += parts.count > 1 ? parts[1...] : words[(index + 1)...].prefix(1)
        }
        return places.allSatisfy { $0.hasPrefix("/") }
    }

    /// The command that starts it again.
    ///
    /// - Parameter socket: where the daemon listens, if that was stated here. A daemon takes it from `RINGBACK_SOCK` too.
    func command(listeningAt socket: String?) -> ShownCommand {
        let isStated = words.contains { $0 == "--socket" || $0.hasPrefix("--socket=") }
        let more = isStated ? [] : socket.map { ["--socket", $0] } ?? []
        return ShownCommand(words: words + more)
    }
}
