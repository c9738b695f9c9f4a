internal import CLinux
internal import Dispatch
internal import Glibc
internal import RingbackBase

/// One helper process as seen by the daemon: the socket and the responses that are incomplete.
struct HelperProcess {
    typealias Answer = Result<HelperMessage, HelperError>

    let id: pid_t
    let socket: Int32
    /// Signals that there is something to read. Its cancellation closes the socket.
    var source: (any DispatchSourceRead)?
    var reader = MessageReader(limit: RunningCommand.Bounds().maxOutput)

    /// Starts the executable with these arguments. Its descriptor ``Helper/descriptor`` is one end of a socket.
    static func start(_ executable: String, _ arguments: [String]) throws(HelperError) -> HelperProcess {
        // A process list must show the daemon's own name, not `/proc/self/exe`.
        let name = executable.hasPrefix("/proc/self/") ? CommandLine.arguments.first ?? executable : executable
        let (id, socket) = try Spawn.withSocket(
            executable, [name] + arguments, environment: CleanEnvironment.current(forHelper: true))
        return HelperProcess(id: id, socket: socket)
    }

    enum Sending {
        case done
        /// Nothing was sent: the process does not read at the moment.
        case full
        /// The process has ended, or got a part of the message, so that the framing is lost.
        case broken
    }

    /// A copy of the descriptor goes with the message.
    func send(_ message: [UInt8], _ descriptor: Int32? = nil) -> Sending {
        let descriptors = descriptor.map { [$0] } ?? []
        let count = unsafe clinux_send_with_descriptors(
            socket, message, message.count, descriptors, descriptors.count, Int32(MSG_DONTWAIT))
        return count == message.count ? .done : count == -Int(EAGAIN) ? .full : .broken
    }

    struct Arrivals {
        var answers: [(request: Int, answer: Answer)] = []
        var events: [BusEvent] = []
        var notices: [NoticeEvent] = []
        /// No more will come: the process has ended or violated the protocol.
        var isOver = false
    }

    mutating func receive() -> Arrivals {
        var arrivals = Arrivals()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        defer { erase(&buffer) }
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                arrivals.isOver = code != EAGAIN
                return arrivals
            }
            guard count > 0 else {
                arrivals.isOver = true
                return arrivals
            }
            reader.append(buffer[0..<count])
            do {
                while let message = try reader.next() { try take(message, into: &arrivals) }
            } catch {
                arrivals.isOver = true
                return arrivals
            }
        }
    }

    private func take(_ message: HelperMessage, into arrivals: inout Arrivals) throws {
        let line = message.members
        if line["event"]?.string == NoticeEvent.event {
            guard let event = NoticeEvent(members: line) else { throw MessageReader.Broken() }
            return arrivals.notices.append(event)
        }
        if let name = line["event"]?.string {
            guard let event = BusEvent(rawValue: name) else { throw MessageReader.Broken() }
            return arrivals.events.append(event)
        }
        guard let request = line["id"]?.integer, let isGood = line["ok"]?.bool else { throw MessageReader.Broken() }
        arrivals.answers.append((request, isGood ? .success(message) : .failure(HelperError(members: line))))
    }

    /// Closes the socket. A helper that works then kills its commands and ends.
    func hangUp() {
        if let source { source.cancel() } else { close(socket) }
    }

    /// Closes the socket and kills the process, which has violated the protocol or hangs.
    func end() {
        hangUp()
        kill(id, SIGKILL)
    }

    /// Waits for the end of a killed process. Blocks for a moment.
    static func reap(_ id: pid_t) {
        var status: Int32 = 0
        while unsafe waitpid(id, &status, 0) < 0, errno == EINTR {}
    }
}

/// The helper process. Only it starts programs, and only it connects to the user's D-Bus buses. The daemon starts it
/// before it creates threads, as the same executable with another argument, and gives it one end of a socket. The
/// helper reads the configuration itself, and the daemon can name an account but not a command. Attack: somebody who
/// takes over the daemon, which connects to servers, can therefore not run arbitrary commands: the kernel lets the daemon
/// start no program (``clinux_forbid_programs``). From the keyring it can request only Ringback's own keys.
///
/// The daemon cannot start the helper again; without its helper it ends, and its service manager starts both.
public enum Helper {
    /// The number of the helper's end of the socket.
    public static let descriptor: Int32 = 3

    /// Serves until the daemon closes the socket; returns the exit status. Call it in `main`, before any thread is
    /// created. `command` returns an account's argument vector from the current configuration (its first word is an
    /// absolute path or a name in PATH), or nil if it has none. `application` does the same for a scheme; the word
    /// `{url}` in it stands for a link. `browser` returns the program that opens the account's sign-in page, if one is
    /// configured; its outer nil says that the configuration cannot be read. `relay` is the program that carries the
    /// traffic of exposed sockets. PR_SET_PDEATHSIG is not used: the closed socket is noticed at the same moment and leaves
    /// time to kill the running commands, which no other process would do.
    public static func run(
        descriptor: Int32 = descriptor, application: @escaping (String) -> [String]? = { _ in nil },
        browser: @escaping (String) -> [String]?? = { _ in .some(nil) }, relay: String = "ringback-relay",
        command: @escaping (String) -> [String]?
    ) -> Int32 {
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 else { return EX_USAGE }
        // Secrets pass through this process: no core file, no ptrace.
        guard clinux_refuse_dumps() == 0 else { return EX_OSERR }
        closeDescriptors(from: descriptor + 1)
        closeOnExec(descriptor)
        // SIGTERM and the like go to the whole process group. Only the daemon acts on them: it may still need a client
        // secret from here to revoke a token.
        for number in [SIGHUP, SIGINT, SIGTERM, SIGPIPE] { signal(number, SIG_IGN) }
        var loop = HelperLoop(
            socket: descriptor, environment: CleanEnvironment.current(),
            applicationEnvironment: CleanEnvironment.current(forApplications: true), application: application,
            browser: browser, relay: relay, command: command
        )
        loop.run()
        // `_exit`, because threads may still be using libsystemd, which `exit` would tear down under them.
        if loop.hasUsedBus { _exit(EX_OK) }
        return EX_OK
    }
}

/// Why the helper process did not do what was requested. The texts are our own and contain no output of a command.
public enum HelperError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The helper process could not be started; the system's reason.
    case notStarted(reason: String)
    /// The helper process ended or violated the protocol before it responded.
    case ended
    /// The configured command printed no secret: `exited with status 1`, `did not finish within 60 s`, ...
    case commandFailed(reason: String)
    /// A program could not be started: `was not started: there is no program xdg-open`, ...
    case programFailed(reason: String)
    case secretService(SecretServiceError)
    case timedOut
    case cancelled

    init(members: JSONObject) {
        self =
            SecretServiceError(members: members).map { .secretService($0) }
            ?? .commandFailed(reason: members["reason"]?.string ?? "failed")
    }

    var members: JSONObject {
        switch self {
        case .secretService(let error): error.members
        case .commandFailed(let reason): ["reason": reason]
        default: ["reason": description]
        }
    }

    public var description: String {
        switch self {
        case .notStarted(let reason): "the helper process could not be started: \(reason)"
        case .ended: "the helper process ended before it responded"
        case .commandFailed(let reason): "client_secret_command \(reason)"
        case .programFailed(let reason): "the program \(reason)"
        case .secretService(let error): "\(error)"
        case .timedOut: "the helper process did not respond in time"
        case .cancelled: "cancelled"
        }
    }
}

/// Starts a program with exactly this environment, default signal handlers and one descriptor of ours. All other
/// descriptors of ours except 0, 1 and 2 are close-on-exec. It uses `posix_spawn` instead of `fork`, because it works
/// from any thread and runs no code of ours in the child.
struct Spawn {
    /// An absolute path, or a name looked up in PATH.
    var program: String
    /// The arguments, the first being the program's name.
    var arguments: [String]
    /// `NAME=value` lines.
    var environment: [String]
    /// The descriptor that becomes `target` in the child.
    var descriptor: Int32
    var target: Int32
    /// Standard input becomes /dev/null.
    var hasEmptyInput = false
    /// The child leads a process group, so that it can be killed together with all that it starts.
    var leadsGroup = false

    /// An errno.
    struct Failure: Error, Equatable {
        let code: Int32
    }

    /// Starts a program with one end of a socket pair as its descriptor ``Helper/descriptor``. Returns the other end.
    static func withSocket(
        _ program: String, _ arguments: [String], environment: [String]
    ) throws(HelperError) -> (process: pid_t, socket: Int32) {
        do throws(Failure) {
            let (near, far) = try socketPair()
            defer { close(far) }
            let spawn = Spawn(
                program: program, arguments: arguments, environment: environment, descriptor: far,
                target: Helper.descriptor)
            do throws(Failure) {
                return (try spawn.start(), near)
            } catch {
                close(near)
                throw error
            }
        } catch {
            throw .notStarted(reason: reason(error.code))
        }
    }

    func start() throws(Failure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        // The order matters if our descriptor is 0: first it is duplicated, then 0 is replaced.
        unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, target)
        if hasEmptyInput { unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) }

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        if leadsGroup {
            flags |= POSIX_SPAWN_SETPGROUP
            unsafe posix_spawnattr_setpgroup(&attributes, 0)
        }
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2] {
            unsafe sigaddset(&signals, signal)
        }
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)

        var child: pid_t = 0
        let code = unsafe withCStrings(arguments) { arguments in
            unsafe withCStrings(environment) { environment in
                unsafe posix_spawnp(&child, program, &actions, &attributes, arguments, environment)
            }
        }
        guard code == 0 else { throw Failure(code: code) }
        return child
    }
}

/// Two connected sockets, closed on exec.
func socketPair(isNonBlocking: Bool = false) throws(Spawn.Failure) -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (isNonBlocking ? SOCK_NONBLOCK.rawValue : 0)
    guard unsafe socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { throw Spawn.Failure(code: errno) }
    return (ends[0], ends[1])
}

/// Wakes a thread that waits in `poll`.
final class Wakeup: Sendable {
    private let near: Int32
    private let far: Int32

    init() throws(Spawn.Failure) { (near, far) = try socketPair(isNonBlocking: true) }

    deinit {
        close(near)
        close(far)
    }

    var interest: pollfd { pollfd(fd: near, events: Int16(POLLIN), revents: 0) }

    func wake() {
        // If the socket is full, a byte is waiting in it already.
        _ = unsafe send(far, [1], 1, Int32(MSG_NOSIGNAL))
    }

    func empty() {
        var buffer = [UInt8](repeating: 0, count: 64)
        while unsafe recv(near, &buffer, buffer.count, 0) > 0 {}
    }
}

func setNonBlocking(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }

func closeOnExec(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }

/// Closes every descriptor from `first` on. The program that started the daemon may have left some open, which commands
/// must not inherit.
func closeDescriptors(from first: Int32) {
    // The descriptor of the directory itself is closed already.
    for name in Directory.names(in: "/proc/self/fd") {
        if let descriptor = Int32(name), descriptor >= first { close(descriptor) }
    }
}

/// Zeroes and empties a buffer that held a secret. The optimizer does not remove this.
func erase(_ bytes: inout [UInt8]) {
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let base = buffer.baseAddress else { return }
        unsafe explicit_bzero(base, buffer.count)
    }
    bytes.removeAll()
}

func reason(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
