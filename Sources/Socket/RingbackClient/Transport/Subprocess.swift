import Glibc

/// Starts programs from an argument vector, never through a shell. Signals are as a new program expects them, and it
/// gets no descriptor of ours but those that are named.
package enum Subprocess {
    /// What a program's standard output and error go to.
    package enum Output {
        case inherited
        case nothing
        case descriptor(Int32)
    }

    /// POSIX_SPAWN_SETSID of glibc's <spawn.h>, which the module does not show.
    private static let newSession: Int16 = 0x80

    /// Starts a program in a session of its own (it outlives this one and sees no Ctrl-C). PATH is searched for a name
    /// without `/`.
    ///
    /// - Parameters:
    ///   - asksUser: it stays in this session, and reads this one's standard input.
    ///   - input: the descriptor that is its standard input; else that is empty.
    /// - Returns: the pid, or nil if it could not be started.
    package static func start(
        _ arguments: [String], output: Output = .inherited, errors: Output = .inherited, environment: [String]? = nil,
        asksUser: Bool = false, input: Int32? = nil
    ) -> Int32? {
        guard let program = arguments.first, !program.isEmpty, !arguments.contains(where: { $0.utf8.contains(0) })
        else { return nil }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if let input {
            unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else if !asksUser {
            unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        for (number, place) in [(Int32(1), output), (2, errors)] {
            switch place {
            case .inherited: break
            case .nothing: unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_WRONLY, 0)
            case .descriptor(let descriptor): unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            }
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        var usual = sigset_t()
        unsafe sigemptyset(&usual)
        for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { unsafe sigaddset(&usual, signal) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &usual)
        let flags = Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | (asksUser ? 0 : newSession)
        unsafe posix_spawnattr_setflags(&attributes, flags)
        var pid: Int32 = 0
        let failure = unsafe withVector(arguments) { arguments in
            guard let environment else {
                return unsafe posix_spawnp(&pid, program, &actions, &attributes, arguments, environ)
            }
            return unsafe withVector(environment) { variables in
                unsafe posix_spawnp(&pid, program, &actions, &attributes, arguments, variables)
            }
        }
        return failure == 0 ? pid : nil
    }

    /// Reads a child's exit status when it ends. Otherwise the child would stay a zombie as long as this process lives.
    ///
    /// - Returns: false if no thread could be started for that.
    package static func forget(_ pid: Int32) -> Bool { Blocking.start { _ = wait(pid) } == 0 }

    /// Waits for a child's end: its exit status, or 128 and the signal.
    @discardableResult
    package static func wait(_ pid: Int32) -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0 {
            guard errno == EINTR else { return -1 }
        }
        return exitStatus(status)
    }

    /// As ``wait(_:)`` for a child that has ended; nil for one that runs.
    package static func endedStatus(_ pid: Int32) -> Int32? {
        var status: Int32 = 0
        return unsafe waitpid(pid, &status, WNOHANG) == pid ? exitStatus(status) : nil
    }

    private static func exitStatus(_ status: Int32) -> Int32 {
        status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    private static func withVector<Result>(
        _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = unsafe strings.map { unsafe strdup($0) }
        unsafe pointers.append(nil)
        defer { unsafe pointers.forEach { unsafe free($0) } }
        return unsafe pointers.withUnsafeMutableBufferPointer { buffer in
            // The vector holds at least its end mark, so it has an address.
            guard let base = buffer.baseAddress else { preconditionFailure("an empty vector") }
            return unsafe body(base)
        }
    }
}
