// A child process: an argument vector, a clean environment, three descriptors, and an end that is always collected.

import Glibc
import TestSupport

struct Transcript: Sendable {
    var text = ""
    var isOver = false

    var lines: [String] { text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init) }
}

final class Program: Sendable {
    let name: String
    let pid: pid_t
    let output = Watched(Transcript())
    let errors = Watched(Transcript())
    private let status = Watched<Int32?>(nil)

    /// Starts a program. A name without `/` is one of ``Programs``.
    ///
    /// - Parameter stdin: what it reads; nil is `/dev/null`. At most a pipe's worth (64 KiB).
    init(_ name: String, _ arguments: [String] = [], environment: [String: String], stdin: String? = nil) throws {
        self.name = name
        let child = try Program.begin([Programs.path(name)] + arguments, environment.map { "\($0)=\($1)" }, stdin)
        pid = child.pid
        Program.read(child.output, into: output)
        Program.read(child.errors, into: errors)
        Program.collect(pid, into: status)
    }

    var endedStatus: Int32? { status.value }

    /// Sends a signal; nothing if it has ended, since its pid may be somebody else's by then.
    func send(_ signal: Int32) { if status.value == nil { kill(pid, signal) } }

    func end(within bound: Duration = Bound.usual) async throws -> Output {
        let ended = try await status.first("the end of \(self.about)", within: bound) { $0 }
        _ = try await output.first("the end of the output of \(name)") { $0.isOver ? true : nil }
        _ = try await errors.first("the end of the errors of \(name)") { $0.isOver ? true : nil }
        return Output(status: ended, out: output.value.text, err: errors.value.text)
    }

    func line(
        _ what: String = "a line", within bound: Duration = Bound.usual,
        where isWanted: @escaping @Sendable (String) -> Bool = { _ in true }
    ) async throws -> String {
        try await output.first("\(what), from \(self.about)", within: bound) { $0.lines.first(where: isWanted) }
    }

    func errorLine(
        _ what: String, within bound: Duration = Bound.usual, where isWanted: @escaping @Sendable (String) -> Bool
    ) async throws -> String {
        try await errors.first("\(what), from \(self.about)", within: bound) { $0.lines.first(where: isWanted) }
    }

    /// Asks it to end, and insists after a while. True if it went when it was asked.
    @discardableResult
    func stop(within bound: Duration = Bound.usual) async -> Bool {
        send(SIGTERM)
        if (try? await status.first("", within: bound, { $0 })) != nil { return true }
        send(SIGKILL)
        _ = try? await status.first("", within: bound) { $0 }
        return false
    }

    private var about: String {
        "\(name) (status \(status.value.map(String.init) ?? "none yet"))\n--- out\n\(output.value.text)"
            + "--- err\n\(errors.value.text)---"
    }

    private static func begin(
        _ arguments: [String], _ environment: [String], _ stdin: String?
    ) throws -> (pid: pid_t, output: Int32, errors: Int32) {
        let output = try makePipe()
        let errors = try makePipe()
        let input = if let stdin { try filledPipe(stdin) } else { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
        defer { for descriptor in [output.write, errors.write, input] { close(descriptor) } }
        do {
            return (try spawn(arguments, environment, [input, output.write, errors.write]), output.read, errors.read)
        } catch {
            close(output.read)
            close(errors.read)
            throw error
        }
    }

    /// A pipe that holds the text and nothing after it.
    private static func filledPipe(_ text: String) throws -> Int32 {
        let (readEnd, writeEnd) = try makePipe()
        defer { close(writeEnd) }
        let bytes = Array(text.utf8)
        guard bytes.count <= 65_536, unsafe write(writeEnd, bytes, bytes.count) == bytes.count else {
            throw SystemError(call: "write", code: EMSGSIZE)
        }
        return readEnd
    }

    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SystemError(call: "pipe", code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func read(_ descriptor: Int32, into transcript: Watched<Transcript>) {
        startThread {
            var pending: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                pending += buffer[..<count]
                // A character may come in two pieces; lines are whole.
                guard let end = pending.lastIndex(of: UInt8(ascii: "\n")) else { continue }
                let whole = String(decoding: pending[...end], as: UTF8.self)
                pending.removeSubrange(...end)
                transcript.change { $0.text += whole }
            }
            let rest = String(decoding: pending, as: UTF8.self)
            close(descriptor)
            transcript.change {
                $0.text += rest
                $0.isOver = true
            }
        }
    }

    static func collect(_ pid: pid_t, into status: Watched<Int32?>) {
        startThread {
            var code: Int32 = 0
            while unsafe waitpid(pid, &code, 0) < 0, errno == EINTR {}
            let signal = code & 0x7F
            let ended = signal == 0 ? (code >> 8) & 0xFF : 128 + signal
            status.change { $0 = ended }
        }
    }

    static func spawn(_ arguments: [String], _ environment: [String], _ descriptors: [Int32]) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
        }
        // Whatever else is open here is no business of a child's: not every library marks what it opens, and a pipe is
        // not close-on-exec from its first instant. Swift does not see this call.
        guard let symbol = unsafe dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else {
            throw SystemError(call: "posix_spawn_file_actions_addclosefrom_np", code: ENOSYS)
        }
        typealias ClosesFrom = @convention(c) (UnsafeMutableRawPointer, Int32) -> Int32
        _ = unsafe unsafeBitCast(symbol, to: ClosesFrom.self)(&actions, Int32(descriptors.count))
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        // What started the tests may ignore signals, as nohup and a shell's background do: that is not inherited.
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        // A process group of its own: a signal from the terminal is not for it.
        unsafe posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETPGROUP))
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer { unsafe (vector + variables).forEach { unsafe free($0) } }
        var pid: pid_t = 0
        let code = unsafe posix_spawn(&pid, arguments[0], &actions, &attributes, &vector, &variables)
        guard code == 0 else { throw SystemError(call: "start \(arguments[0])", code: code) }
        return pid
    }
}
