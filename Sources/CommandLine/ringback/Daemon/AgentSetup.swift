import Glibc
import RingbackAPI
import RingbackClient

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
