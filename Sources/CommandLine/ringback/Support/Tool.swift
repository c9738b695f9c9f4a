import Glibc
import RingbackClient

/// Runs a program of the system for its output, without its messages and with a time limit. At the limit it is killed
/// with everything that it started.
enum Tool {
    /// Its output and its exit status.
    struct Answer {
        let status: Int32
        let output: String

        /// The first line, if it says something.
        var line: String? {
            output.split(separator: "\n").first.map { String($0.drop { $0 == " " }) }.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// The longest output that is read, in bytes.
    private static let maxOutput = 1 << 20

    /// Runs it; nil if it cannot be started or takes too long.
    ///
    /// - Parameter withErrors: its messages are part of its output.
    static func run(
        _ arguments: [String], within bound: Duration = .seconds(10), withErrors: Bool = false
    ) -> Answer? {
        guard let name = arguments.first, isInstalled(name), let pipe = try? Pipe(),
            let pid = Subprocess.start(
                arguments, output: .descriptor(pipe.writeEnd),
                errors: withErrors ? .descriptor(pipe.writeEnd) : .nothing)
        else { return nil }
        pipe.closeWriteEnd()
        let end = ContinuousClock.now + bound
        var output: [UInt8] = []
        while let piece = pipe.read(until: end), output.count <= maxOutput {
            if piece.isEmpty {
                guard let status = ending(of: pid, until: end) else { break }
                return Answer(status: status, output: String(decoding: output, as: UTF8.self))
            }
            output += piece
        }
        // It leads a session of its own, and so a process group.
        kill(-pid, SIGKILL)
        Subprocess.wait(pid)
        return nil
    }

    /// How a program that has closed its output has ended. Most end at once; the others are checked again and again.
    private static func ending(of pid: Int32, until end: ContinuousClock.Instant) -> Int32? {
        while true {
            if let status = Subprocess.endedStatus(pid) { return status }
            guard ContinuousClock.now < end else { return nil }
            usleep(500)
        }
    }

    /// True if there is such a program; a name without `/` is looked for in PATH.
    static func isInstalled(_ name: String) -> Bool { place(of: name) != nil }

    /// Where a program is.
    static func place(of name: String) -> String? { SearchPath.own.place(of: name) }
}

/// A `PATH`: the folders in which programs are looked for by name.
struct SearchPath {
    let folders: [String]

    init(_ text: String) { folders = text.split(separator: ":").map(String.init) }

    /// This program's, which is that of the shell that started it.
    static var own: SearchPath { SearchPath(SocketPlace.variable("PATH") ?? "/usr/local/bin:/usr/bin:/bin") }

    /// Where a program is; a name with `/` is its path. As for a shell, a folder is no program.
    func place(of name: String) -> String? {
        if name.contains("/") { return SearchPath.isProgram(name) ? name : nil }
        return folders.map { "\($0)/\(name)" }.first(where: SearchPath.isProgram)
    }

    private static func isProgram(_ path: String) -> Bool {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return false }
        return unsafe access(path, X_OK) == 0
    }
}
