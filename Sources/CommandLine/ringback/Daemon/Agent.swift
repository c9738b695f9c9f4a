import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient

struct Agent: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command with a private daemon.",
        discussion: """
            Starts a private daemon, and runs the command with RINGBACK_SOCK set to that daemon's socket. The daemon ends \
            with the command. The exit status is the command's. Without a command, $SHELL is run. Sessions are only in \
            memory. Needs neither XDG_RUNTIME_DIR nor HOME: for build jobs, batch systems and containers.
            """)

    @Option(help: ArgumentHelp("The configuration, if not the usual one.", valueName: "file"))
    var config: String?

    @Option(
        name: .customLong("credential-fd"),
        help: ArgumentHelp(
            "A secret for the daemon, on an open descriptor; client_secret_credential names it.",
            valueName: "name=n"))
    var credentials: [String] = []

    @Option(help: ArgumentHelp("How much the daemon logs on standard error.", valueName: "level"))
    var logLevel = "warning"

    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("After --: the command.", valueName: "cmd"),
        completion: Completions.command)
    var command: [String] = []

    /// The descriptors that are passed to the daemon.
    private var descriptors: [Int32?] {
        credentials.map { $0.split(separator: "=").last.flatMap { Int32($0) } }
    }

    func validate() throws {
        guard descriptors.allSatisfy({ ($0 ?? 0) > 2 }) else {
            throw ValidationError(
                "--credential-fd must be NAME=N: a credential's name, and an open descriptor from 3 on.")
        }
        if command.first == "" { throw ValidationError("The command is empty.") }
    }

    func run() throws {
        let child = ChildCommand()
        var status: Int32 = 0
        try present { () throws(RingbackError) in
            let setup = try AgentSetup()
            defer { setup.end() }
            if let ended = try setup.start(daemonOptions, child) {
                // The daemon has printed why.
                Output.note("ringback: the agent's daemon did not start (status \(ended)).")
                status = ended
            } else {
                status = run(child, in: setup)
            }
        }
        if status != 0 { throw ExitCode(status) }
    }

    private var daemonOptions: [String] {
        var options = ["--log-level", logLevel]
        if let config { options += ["--config", config] }
        for credential in credentials { options += ["--credential-fd", credential] }
        return options
    }

    /// Runs the command until it ends. Returns its exit status.
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
        switch child.start(command) {
        case .success(let pid): return child.wait(for: pid) { setup.note(endOf: $0, $1) }
        case .failure(let failure):
            let failure = CommandFailure(program: command[0], code: failure.code)
            failure.show()
            return failure.status
        }
    }
}

/// The private directory of an agent, and the daemon in it. At the end the daemon is ended first, then the directory is
/// removed. If this process is killed, the daemon notices it and does both.
final class AgentSetup {
    let directory: String
    var socket: String { directory + "/ringback.sock" }
    private var daemon: Int32?

    /// A socket's path has 107 bytes at most.
    private static let longestParent = 64

    init() throws(RingbackError) {
        // If neither a runtime directory nor /tmp can be written to, /dev/shm is tried.
        let stated = ["TMPDIR", "XDG_RUNTIME_DIR"].compactMap { SocketPlace.variable($0) }
        let parents = (stated + ["/tmp", "/var/tmp", "/dev/shm"]).filter {
            $0.hasPrefix("/") && $0.utf8.count < AgentSetup.longestParent
        }
        for parent in parents {
            // The directory gets mode 0700 and an unpredictable name.
            var template = Array("\(parent)/ringback-agent.XXXXXX".utf8CString)
            guard unsafe mkdtemp(&template) != nil else { continue }
            directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return
        }
        throw RingbackError(
            .systemError,
            "No private directory can be made in \(parents.joined(separator: ", ")). Set TMPDIR to a place for one.")
    }

    /// Starts the daemon and waits until it responds.
    ///
    /// - Returns: nil, or its exit status if it ended before that.
    func start(_ options: [String], _ command: ChildCommand) throws(RingbackError) -> Int32? {
        let program = Programs.path("ringbackd")
        let arguments = ["--agent", directory, "--exit-with-parent=\(getpid())"] + options
        guard let pid = Subprocess.start([program] + arguments, output: .nothing) else {
            throw RingbackError(
                "program_missing", "ringbackd cannot be started: install it beside ringback, or in PATH.")
        }
        daemon = pid
        let calls = BrokerCalls(socket: socket, application: "ringback agent", interruption: nil)
        let end = ContinuousClock.now + .seconds(20)
        while true {
            do throws(RingbackError) {
                _ = try calls.call(.getStatus, timeout: .seconds(5))
                return nil
            } catch {
                guard error.kind == .noDaemon, ContinuousClock.now < end else { throw error }
            }
            if let status = Subprocess.endedStatus(pid) {
                daemon = nil
                return status
            }
            if command.isStopped(within: .milliseconds(10)) { throw RingbackError(.cancelled, "Interrupted.") }
        }
    }

    /// A child has ended. Prints a note if it is the daemon, which was not asked to end.
    func note(endOf pid: Int32, _ status: Int32) {
        guard pid == daemon else { return }
        daemon = nil
        Output.note("ringback: the agent's daemon ended with status \(status). Its sessions are gone.")
    }

    /// Ends the daemon and removes the directory.
    func end() {
        if let pid = daemon {
            daemon = nil
            kill(pid, SIGTERM)
            let end = ContinuousClock.now + .seconds(6)
            while Subprocess.endedStatus(pid) == nil {
                guard ContinuousClock.now < end else {
                    kill(pid, SIGKILL)
                    Subprocess.wait(pid)
                    break
                }
                poll(nil, 0, 5)
            }
        }
        FileTree.remove(directory)
    }
}
