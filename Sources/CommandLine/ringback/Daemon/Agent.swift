import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient

struct Agent: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command with a private daemon.",
        discussion: """
            Starts a private daemon, and runs the command with RINGBACK_SOCK set to that daemon's socket. The daemon ends \
            with the command. The exit status is the command's. Without a command, $SHELL is run. Sessions are only in \
            memory. Needs neither XDG_RUNTIME_DIR nor HOME: for build jobs, batch systems and containers.
            """)

    @Option(help: .value("file", "The configuration, if not the usual one.")) var config: String?

    @Option(
        name: .customLong("credential-fd"),
        help: .value("name=n", "A secret for the daemon, on an open descriptor; client_secret_credential names it."))
    var credentials: [String] = []

    @Option(help: .value("level", "How much the daemon logs on standard error.")) var logLevel = "warning"

    @Argument(parsing: .postTerminator, help: .value("cmd", "After --: the command."), completion: Completions.command)
    var command: [String] = []

    private var descriptors: [Int32?] {
        credentials.map { $0.split(separator: "=").last.flatMap { Int32($0) } }
    }

    func validate() throws {
        try require(
            descriptors.allSatisfy({ ($0 ?? 0) > 2 }),
            "--credential-fd must be NAME=N: a credential's name, and an open descriptor from 3 on.")
        try require(command.first != "", "The command is empty.")
    }

    func run() throws {
        let child = ChildCommand()
        let setup = try AgentSetup()
        defer { setup.end() }
        let options = ["--log-level", logLevel] + (config.map { ["--config", $0] } ?? [])
        if let ended = try setup.start(options + credentials.flatMap { ["--credential-fd", $0] }, child) {
            // The daemon has printed why.
            Output.note("ringback: the agent's daemon did not start (status \(ended)).")
            throw ExitCode(ended)
        }
        try ExitStatus.end(with: run(child, in: setup))
    }

    private func run(_ child: ChildCommand, in setup: AgentSetup) -> Int32 {
        // Descriptors that are for the daemon are closed before the command starts.
        for descriptor in descriptors.compactMap({ $0 }) { close(descriptor) }
        unsafe setenv("RINGBACK_SOCK", setup.socket, 1)
        if let config, let path = unsafe realpath(config, nil) {
            unsafe setenv("RINGBACK_CONFIG", path, 1)
            unsafe free(path)
        }
        let shell = SocketPlace.variable("SHELL").flatMap { $0.isEmpty ? nil : $0 } ?? "/bin/sh"
        let command = command.isEmpty ? [shell] : command
        do throws(CommandFailure) {
            return child.wait(for: try child.start(command), childEnded: setup.note(endOf:_:))
        } catch {
            error.show()
            return error.status
        }
    }
}

/// The private directory of an agent, and the daemon in it. If this process is killed, the daemon notices it and
/// removes the directory.
final class AgentSetup {
    let directory: String
    var socket: String { directory + "/ringback.sock" }
    private var daemon: Int32?

    init() throws(RingbackError) {
        // Where none of the others can be written to, /dev/shm is tried. A socket's path has at most 107 bytes.
        let stated = ["TMPDIR", "XDG_RUNTIME_DIR"].compactMap { SocketPlace.variable($0) }
        let parents = (stated + ["/tmp", "/var/tmp", "/dev/shm"]).filter { $0.hasPrefix("/") && $0.utf8.count < 64 }
        for parent in parents {
            guard let made = Files.makePrivateDirectory(in: parent, named: "ringback-agent") else { continue }
            directory = made
            return
        }
        throw RingbackError(
            .systemError,
            "No private directory can be made in \(parents.joined(separator: ", ")). Set TMPDIR to a place for one.")
    }

    func start(_ options: [String], _ command: ChildCommand) throws(RingbackError) -> Int32? {
        let words = [Programs.path("ringbackd"), "--agent", directory, "--exit-with-parent=\(getpid())"]
        guard let pid = Subprocess.start(words + options, output: .nothing) else {
            throw Programs.missing("ringbackd")
        }
        daemon = pid
        let calls = BrokerCalls(socket: socket, application: "ringback agent", interruption: nil)
        let (answer, status) = try calls.start(of: pid) { command.isStopped(within: .milliseconds(10)) }
        if answer != nil { return nil }
        daemon = nil
        return status
    }

    /// Prints a note if the child is the daemon, which was not asked to end.
    func note(endOf pid: Int32, _ status: Int32) {
        guard pid == daemon else { return }
        daemon = nil
        Output.note("ringback: the agent's daemon ended with status \(status). Its sessions are gone.")
    }

    func end() {
        if let pid = daemon { _ = Programs.end(pid) }
        daemon = nil
        Files.removeTree(directory)
    }
}

extension BrokerCalls {
    /// Waits for a daemon's first response; `answer` is nil if it has ended, with a status.
    func start(
        of pid: Int32, isStopped: () -> Bool
    ) throws(RingbackError) -> (answer: JSON?, status: Int32) {
        let end = ContinuousClock.now + .seconds(20)
        while true {
            do throws(RingbackError) {
                return (try call(.getStatus, timeout: .seconds(5)), 0)
            } catch {
                guard error.kind == .noDaemon, ContinuousClock.now < end else { throw error }
            }
            if let status = Subprocess.endedStatus(pid) { return (nil, status) }
            if isStopped() { throw RingbackError(.cancelled, "Interrupted.") }
        }
    }
}
