import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// Where the daemon is, on every verb that asks it.
struct DaemonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The daemon's socket, if not the usual one.", valueName: "path"))
    var socket: String?

    func calls(_ interruption: Interruption? = nil) throws(RingbackError) -> BrokerCalls {
        try Daemon.calls(socket: socket, interruption)
    }
}

/// The connection to the daemon.
enum Daemon {
    static func calls(socket: String?, _ interruption: Interruption? = nil) throws(RingbackError) -> BrokerCalls {
        BrokerCalls(
            socket: try SocketPlace.path(stated: socket), application: "ringback", interruption: interruption)
    }
}

/// For the verbs that print data.
struct JSONOption: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Print JSON.")
    var isWanted = false
}

/// Runs a verb's work. A failure is printed on standard error and becomes the exit status.
func present(account: String? = nil, _ work: () throws(RingbackError) -> Void) throws {
    do throws(RingbackError) {
        try work()
    } catch {
        Failure(error, account: account).show()
        throw ExitCode(ExitStatus.of(error))
    }
}

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

/// Where a verb prints its text. On a terminal, notes, fields and usage are broken between words at its width; results,
/// which may be copied, and whatever goes into a pipe are not.
enum Output {
    /// Prints a result. If it cannot be written, the process exits with status 1.
    static func line(_ text: String) {
        guard Console.write(text + "\n", to: .output) else {
            note("ringback: the output cannot be written")
            exit(1)
        }
    }

    /// A result as JSON, on one line, whatever is in it.
    static func json(_ json: JSON) { line(json.visibleText) }

    /// Prints a result in columns, their names in bold.
    ///
    /// - Parameter below: how many of the last cells are put below their row on a terminal that is too narrow.
    static func table(_ table: Table, below: Int = 0) {
        for (index, line) in table.lines(columns: Console.Stream.output.columns, below: below).enumerated() {
            self.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
        }
    }

    /// Prints text that is no result. It may have several lines. What comes from outside must be sanitized before.
    static func note(_ text: String) {
        _ = Console.write(TextWrap.wrapped(text, columns: Console.Stream.errors.columns) + "\n", to: .errors)
    }

    /// Prints a sentence that is a result.
    ///
    /// - Parameter indent: blanks before each further line.
    static func sentence(_ text: String, indent: Int = 0) {
        line(TextWrap.wrapped(text, columns: Console.Stream.output.columns, indent: indent))
    }

    /// Prints a label and a text, aligned; without a text, nothing.
    static func field(_ label: String, _ text: String?) {
        guard let text, !text.isEmpty else { return }
        let padding = String(repeating: " ", count: max(1, 11 - label.utf8.count))
        sentence(label + padding + Sanitizer.line(text, limit: 1_000), indent: 11)
    }
}
