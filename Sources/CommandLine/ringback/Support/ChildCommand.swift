import Glibc
import RingbackClient

/// A command that cannot be started, with the exit statuses that shells use for it.
struct CommandFailure {
    let program: String
    /// An errno.
    let code: Int32

    /// 127: there is no such command; 126: it cannot be run.
    var status: Int32 { code == ENOENT ? 127 : 126 }

    func show() {
        Output.note("ringback: \(program) cannot be started: \(unsafe String(cString: strerror(code)))")
    }
}

/// A command that runs as if the caller had started it: same terminal, same process group, same descriptors. Signals to
/// this process are passed on, and its end is waited for.
///
/// Signals are blocked from the beginning and taken one by one: there is no handler, and no signal is lost between two
/// checks.
struct ChildCommand {
    private static let forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]
    private var former = sigset_t()
    private var awaited = sigset_t()

    /// Blocks the signals until they are waited for.
    init() {
        unsafe sigemptyset(&awaited)
        for number in ChildCommand.forwarded + [SIGCHLD] { unsafe sigaddset(&awaited, number) }
        unsafe sigprocmask(SIG_BLOCK, &awaited, &former)
    }

    /// Waits a moment. True if a signal asks for an end before the command was started.
    func isStopped(within bound: Duration) -> Bool {
        var wait = timespec()
        wait.tv_nsec = Int(bound / .nanoseconds(1))
        var set = awaited
        let number = unsafe sigtimedwait(&set, nil, &wait)
        return [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(number)
    }

    /// Starts the command.
    ///
    /// - Returns: its pid, or an errno.
    func start(_ arguments: [String]) -> Result<Int32, SpawnFailure> {
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var mask = former
        unsafe posix_spawnattr_setsigmask(&attributes, &mask)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe vector.forEach { unsafe free($0) } }
        var pid: Int32 = 0
        let code = unsafe posix_spawnp(&pid, arguments.first ?? "", nil, &attributes, &vector, environ)
        return code == 0 ? .success(pid) : .failure(SpawnFailure(code: code))
    }

    /// An errno.
    struct SpawnFailure: Error {
        let code: Int32
    }

    /// Waits for the command's end and passes signals on meanwhile. `childEnded` is called at the end of every other
    /// child: in a container this may be process 1, which inherits orphaned processes.
    ///
    /// - Returns: the exit status, or 128 and the signal that ended it.
    func wait(for pid: Int32, childEnded: (_ pid: Int32, _ status: Int32) -> Void) -> Int32 {
        while true {
            // The child may have ended before the first wait.
            var status: Int32 = 0
            var result: Int32?
            while case let ended = unsafe waitpid(-1, &status, WNOHANG), ended > 0 {
                let meaning = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
                if ended == pid { result = meaning } else { childEnded(ended, meaning) }
            }
            if let result { return result }
            var set = awaited
            var about = unsafe siginfo_t()
            let number = unsafe sigwaitinfo(&set, &about)
            if number > 0, number != SIGCHLD, unsafe about.si_code <= 0 {
                // A signal from the kernel (Ctrl-C, a hangup) has reached the command already: it is in the same
                // process group.
                kill(pid, number)
            }
        }
    }
}
