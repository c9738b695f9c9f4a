import CLinux
import Glibc
import RingbackClient
import Terminal

/// Ringback's other programs: beside this one, as they are installed and built, or else in PATH.
enum Programs {
    static func path(_ name: String) -> String {
        let sibling = own.map { "\(Files.folder(of: $0))/\(name)" }
        return sibling.flatMap { unsafe access($0, X_OK) == 0 ? $0 : nil } ?? name
    }

    static func missing(_ name: String, _ kind: RingbackError.Kind = "program_missing") -> RingbackError {
        RingbackError(kind, "\(name) cannot be started: install it beside ringback, or in PATH.")
    }

    static func isSelf(_ path: String) -> Bool {
        guard let own, let found = unsafe realpath(path, nil) else { return false }
        defer { unsafe free(found) }
        return unsafe String(cString: found) == own
    }

    static var own: String? { Files.target(of: "/proc/self/exe") }

    /// The variables of this process.
    static var environment: [String: String] {
        var all: [String: String] = [:]
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            if let mark = text.firstIndex(of: "=") {
                all[String(text[..<mark])] = String(text[text.index(after: mark)...])
            }
            unsafe next += 1
        }
        return all
    }

    struct Answer {
        let status: Int32
        let output: [UInt8]

        var text: String { String(decoding: output, as: UTF8.self) }

        var line: String? {
            text.split(separator: "\n").first.map { String($0.drop { $0 == " " }) }.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// Runs a program that is to end in time. At the limit it is killed with everything that it started.
    ///
    /// - Parameters:
    ///   - limit: the most bytes of its output that are read. The report of the largest configuration has 2 MB.
    ///   - errors: ``ErrorOutput/joined`` makes its messages a part of its output.
    ///   - input: 4,096 bytes at most, which a pipe holds. Nil: nothing.
    /// - Throws: `program_missing`; `timed_out` if it does not end in time; `bad_response` for more output.
    static func run(
        _ arguments: [String], within bound: Duration = .seconds(30), limit: Int = 16 << 20,
        errors: ErrorOutput = .inherited, input: [UInt8]? = nil
    ) throws(RingbackError) -> Answer {
        let name = arguments.first ?? ""
        let pipe = try Pipe()
        let given = try input.map { bytes throws(RingbackError) in try Pipe(holding: bytes) }
        let messages: Subprocess.Output =
            switch errors {
            case .inherited: .inherited
            case .dropped: .nothing
            case .joined: .descriptor(pipe.writeEnd)
            }
        guard
            let pid = Subprocess.start(
                arguments, output: .descriptor(pipe.writeEnd), errors: messages, input: given?.readEnd)
        else {
            throw Programs.missing(name)
        }
        pipe.closeWriteEnd()
        let end = ContinuousClock.now + bound
        var output: [UInt8] = []
        while output.count <= limit, let piece = pipe.read(until: end) {
            if piece.isEmpty {
                guard let status = ending(of: pid, until: end) else { break }
                return Answer(status: status, output: output)
            }
            output += piece
        }
        // It leads a session of its own, and so a process group.
        kill(-pid, SIGKILL)
        Subprocess.wait(pid)
        guard output.count <= limit else {
            throw RingbackError(.badResponse, "\(name) wrote more than \(limit >> 20) MiB and was ended.")
        }
        throw RingbackError(.timedOut, "\(name) did not end within \(bound.components.seconds) s and was ended.")
    }

    enum ErrorOutput { case inherited, dropped, joined }

    /// The exit status; nil if it does not end in time. Most end at once; the others are checked again and again.
    static func ending(of pid: Int32, until end: ContinuousClock.Instant) -> Int32? {
        while true {
            if let status = Subprocess.endedStatus(pid) { return status }
            guard ContinuousClock.now < end else { return nil }
            usleep(500)
        }
    }

    /// Asks a program to end, and kills it after six seconds.
    static func end(_ pid: Int32) -> Int32? {
        kill(pid, SIGTERM)
        if let status = ending(of: pid, until: .now + .seconds(6)) { return status }
        kill(pid, SIGKILL)
        Subprocess.wait(pid)
        return nil
    }
}

final class Pipe {
    let readEnd: Int32
    private(set) var writeEnd: Int32

    init() throws(RingbackError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw RingbackError(.systemError, "No pipe can be made.") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    convenience init(holding bytes: [UInt8]) throws(RingbackError) {
        try self.init()
        guard bytes.count <= 4_096, unsafe write(writeEnd, bytes, bytes.count) == bytes.count else {
            throw RingbackError(.systemError, "A pipe cannot be written.")
        }
        closeWriteEnd()
    }

    deinit {
        closeWriteEnd()
        close(readEnd)
    }

    func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    /// What has arrived. Empty at the end; nil if nothing arrived in time or a signal asks for an end.
    func read(until end: ContinuousClock.Instant, _ interruption: Interruption? = nil) -> [UInt8]? {
        while true {
            let left = end - ContinuousClock.now
            let milliseconds = Int32(max(0, min(left / .milliseconds(1), 60_000)))
            let descriptors = [readEnd] + (interruption.map { [$0.descriptor] } ?? [])
            var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            let ready = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
            if entries.count > 1, entries[1].revents != 0 { return nil }
            if ready > 0 { break }
            if ready == 0, milliseconds == 0 { return nil }
        }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe Glibc.read(readEnd, &buffer, 4_096)
        return Array(buffer[..<max(0, count)])
    }
}

/// A command that cannot be started, with the exit statuses that shells use for it.
struct CommandFailure: Error {
    let program: String
    /// An errno.
    let code: Int32

    /// 127: there is no such command; 126: it cannot be run.
    var status: Int32 { code == ENOENT ? 127 : 126 }

    func show() {
        Output.note("ringback: \(program) cannot be started: \(unsafe String(cString: strerror(code)))")
    }
}

/// A command that runs as if the caller had started it: same terminal, same process group, same descriptors. Signals that a
/// terminal sends reach it by themselves; those that are sent to this process alone are passed on to it.
///
/// Signals are blocked from the beginning, taken one by one and passed on: there is no handler, and no signal is lost
/// between two checks.
struct ChildCommand {
    private static let forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH]
    private var former = sigset_t()
    private var awaited = sigset_t()

    init() {
        unsafe sigemptyset(&awaited)
        for number in ChildCommand.forwarded + [SIGCHLD] { unsafe sigaddset(&awaited, number) }
        unsafe sigprocmask(SIG_BLOCK, &awaited, &former)
    }

    /// True if a signal asks for an end before the command was started.
    func isStopped(within bound: Duration) -> Bool {
        var wait = timespec()
        wait.tv_nsec = Int(bound / .nanoseconds(1))
        var set = awaited
        let number = unsafe sigtimedwait(&set, nil, &wait)
        return [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(number)
    }

    /// Passes on the signals that came before the command could take them, those of the terminal too.
    func passPending(_ pass: (_ signal: Int32) -> Void) {
        var (set, none) = (awaited, timespec())
        while case let number = unsafe sigtimedwait(&set, nil, &none), number > 0 {
            // ``wait(for:pass:childEnded:)`` begins with the children that have ended.
            if number != SIGCHLD { pass(number) }
        }
    }

    /// - Parameter environment: its lines; nil for that of this process.
    func start(_ arguments: [String], environment: [String]? = nil) throws(CommandFailure) -> Int32 {
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        var lines = unsafe (environment ?? []).map { unsafe strdup($0) } + [nil]
        defer { unsafe (vector + lines).forEach { unsafe free($0) } }
        var (pid, mask) = (Int32(0), former)
        let program = arguments.first ?? ""
        let code =
            if environment == nil {
                unsafe clinux_start_beside(&pid, program, &vector, environ, &mask)
            } else {
                unsafe clinux_start_beside(&pid, program, &vector, &lines, &mask)
            }
        guard code == 0 else { throw CommandFailure(program: program, code: code) }
        return pid
    }

    /// Waits for the command's end and passes signals on meanwhile. Its exit status, or 128 and the number of a signal.
    ///
    /// - Parameters:
    ///   - pass: sends a signal to the command, if that is not the child itself.
    ///   - childEnded: called at the end of every other child: in a container this may be process 1, which inherits orphaned
    ///     processes. Nil: no other child is waited for.
    func wait(
        for pid: Int32, pass: ((_ signal: Int32) -> Void)? = nil,
        childEnded: ((_ pid: Int32, _ status: Int32) -> Void)? = nil
    ) -> Int32 {
        while true {
            // The child may have ended before the first wait.
            var status: Int32 = 0
            var result: Int32?
            while case let ended = unsafe waitpid(childEnded == nil ? pid : -1, &status, WNOHANG), ended > 0 {
                let meaning = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
                if ended == pid { result = meaning } else { childEnded?(ended, meaning) }
            }
            if let result { return result }
            var set = awaited
            var about = unsafe siginfo_t()
            let number = unsafe sigwaitinfo(&set, &about)
            if number > 0, number != SIGCHLD, unsafe about.si_code <= 0 {
                // A signal from the kernel (Ctrl-C, a hangup) has reached the command already: it is in the same
                // process group.
                if let pass { pass(number) } else { kill(pid, number) }
            }
        }
    }
}

enum Tool {
    /// Runs one for its output, 1 MiB at most; nil if it cannot be started or takes too long.
    static func run(
        _ arguments: [String], within bound: Duration = .seconds(10), errors: Programs.ErrorOutput = .dropped,
        input: [UInt8] = []
    ) -> Programs.Answer? {
        guard let name = arguments.first, isInstalled(name) else { return nil }
        return try? Programs.run(arguments, within: bound, limit: 1 << 20, errors: errors, input: input)
    }

    /// The user's systemd.
    static func systemctl(_ words: String...) -> Programs.Answer? { run(["systemctl", "--user"] + words) }

    static func isInstalled(_ name: String) -> Bool { SearchPath.own.place(of: name) != nil }
}

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

/// The write end that the handler uses; set once, before the handler is.
nonisolated(unsafe) private var trigger: Int32 = -1
nonisolated(unsafe) private var caught = false
/// Keeps the descriptors open, since the handler may write to one at any time.
nonisolated(unsafe) private var kept: Interruption?

/// SIGINT, SIGTERM and SIGHUP interrupt a wait, so that a verb can cancel what it began.
enum Signals {
    /// From now on a first signal interrupts; a second one ends the process at once. A hangup that was ignored at the
    /// start (nohup) stays ignored.
    @discardableResult
    static func interruption() throws(RingbackError) -> Interruption {
        if let interruption = unsafe kept { return interruption }
        let interruption = try Interruption()
        unsafe kept = interruption
        unsafe trigger = interruption.trigger
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { number in
            // Only what a handler may do: set a flag, write, restore the terminal, exit. A closed terminal may send
            // two hangups, one from the kernel and one from the shell: the second does not end the process.
            if unsafe caught, number != SIGHUP {
                TerminalKeys.restoreMode()
                _exit(128 + number)
            }
            unsafe caught = true
            let saved = errno
            var byte: UInt8 = 1
            _ = unsafe write(trigger, &byte, 1)
            errno = saved
        }
        for number in [SIGINT, SIGTERM] { unsafe sigaction(number, &action, nil) }
        if !isIgnored(SIGHUP) { unsafe sigaction(SIGHUP, &action, nil) }
        return interruption
    }

    static var isInterrupted: Bool { unsafe kept?.isInterrupted == true }

    static func isIgnored(_ number: Int32) -> Bool {
        var found = sigaction()
        unsafe sigaction(number, nil, &found)
        return unsafe unsafeBitCast(found.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
