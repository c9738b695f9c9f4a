internal import Glibc

/// Starts a program with exactly this environment, default signal handlers and one descriptor of ours. All other
/// descriptors of ours except 0, 1 and 2 are close-on-exec.
///
/// It uses `posix_spawn` instead of `fork`, because it works from any thread and runs no code of ours in the child.
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

    /// Starts the program and returns its process id.
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

/// Calls `body` with the texts as a NULL-terminated C argument vector, valid during the call.
func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var pointers = unsafe texts.map { unsafe strdup($0) }
    unsafe pointers.append(nil)
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeBufferPointer { buffer in
        // Never empty, because it always has the terminating NULL.
        guard let base = buffer.baseAddress else { preconditionFailure("an argument vector has an end") }
        return unsafe body(base)
    }
}
