import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// The running daemon, compared with this program. An upgrade does not restart daemons, so the two may be built from
/// different commits.
struct DaemonBuild {
    private let status: DaemonStatus
    /// A restricted socket: its daemon may be on another machine, and does not say its commit.
    private let isRestricted: Bool
    /// As `--socket` stated it.
    private let socket: String?

    /// - Parameters:
    ///   - answer: the response to `GET /v1/status`.
    ///   - socket: as `--socket` stated it.
    /// - Throws: if the response is no status.
    init(reading answer: JSON, socket: String?) throws(RingbackError) {
        status = try DaemonStatus(reading: answer)
        isRestricted = answer["exposed_socket"] != nil
        self.socket = socket
    }

    /// The daemon's version and, where it says it, its commit, as `--version` prints them.
    var name: String { DaemonBuild.name(status.version, status.build) }

    /// What differs, in one sentence; nil if both are of one version and commit.
    var difference: String? {
        guard status.version != Ringback.version || (!isRestricted && status.build != Ringback.build) else {
            return nil
        }
        let own = DaemonBuild.name(Ringback.version, isRestricted ? nil : Ringback.build)
        let other = status.build == nil && !isRestricted ? "\(name), of an earlier commit" : name
        return "ringback is \(own), the daemon that runs is \(other)."
    }

    /// How the daemon is restarted: the command, or, where none can be known, a sentence.
    enum Restart {
        case command(ShownCommand)
        case advice(String)

        var command: ShownCommand? { if case .command(let command) = self { command } else { nil } }
        var advice: String? { if case .advice(let advice) = self { advice } else { nil } }
    }

    /// Nil for a daemon behind a restricted socket. Without the unit the command waits for the end of the former daemon,
    /// because a state directory is for one daemon at a time.
    var restart: Restart? {
        guard !isRestricted, let pid = status.pid else { return nil }
        let question = ["systemctl", "--user", "show", DoctorExamination.service, "--property=MainPID"]
        if let answer = Tool.run(question), answer.status == 0, answer.line == "MainPID=\(pid)" {
            return .command(ShownCommand("systemctl --user restart \(DoctorExamination.service)"))
        }
        guard let arguments = DaemonArguments(of: pid) else {
            return .advice("Restart it where it runs; there its pid is \(pid).")
        }
        if arguments.isOfProgram { return .advice("It belongs to the program that started it: restart that program.") }
        let command = ShownCommand(
            "kill \(pid) && tail --pid=\(pid) -f /dev/null && \(arguments.command(listeningAt: socket)) &")
        return arguments.isAbsolute
            ? .command(command) : .advice("To restart it, in the directory where it was started: \(shown: command)")
    }

    private static func name(_ version: String, _ build: String?) -> String {
        version + (build.map { " (\($0))" } ?? "")
    }
}
