internal import CLinux
internal import Glibc

/// The helper process. Only it starts programs, and only it connects to the user's D-Bus buses.
///
/// The daemon starts it before it creates threads, as the same executable with another argument, and gives it one end
/// of a socket. The helper reads the configuration itself, and the daemon can name an account but not a command.
/// Attack: somebody who takes over the daemon, which connects to servers, can therefore not run arbitrary commands.
/// From the keyring it can request only Ringback's own keys.
public enum Helper {
    /// The number of the helper's end of the socket.
    public static let descriptor: Int32 = 3

    /// Serves until the daemon closes the socket; returns the exit status. Call it in `main`, before any thread is
    /// created.
    ///
    /// `command` returns an account's argument vector from the current configuration (its first word is an absolute
    /// path or a name in PATH), or nil if it has none. `application` does the same for a scheme; the word `{url}` in it
    /// stands for a link.
    ///
    /// PR_SET_PDEATHSIG is not used: the closed socket is noticed at the same moment and leaves time to kill the
    /// running commands, which no other process would do.
    public static func run(
        descriptor: Int32 = descriptor, application: @escaping (String) -> [String]? = { _ in nil },
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
            command: command
        )
        loop.run()
        // `_exit`, because threads may still be using libsystemd, which `exit` would tear down under them.
        if loop.hasUsedBus { _exit(EX_OK) }
        return EX_OK
    }
}
