internal import CLinux
internal import Glibc

/// The helper process: the only part of Ringback that starts programs, and the only one that talks to the person's buses.
///
/// The daemon starts it before any thread, as the same executable with another argument, and gives it one end of a
/// socket. It reads the configuration itself: the daemon may name an account, never a command, so whoever takes over
/// the daemon (which talks to servers) has not thereby the means to run anything. Of the keyring it may ask for
/// Ringback's own keys alone.
public enum Helper {
    /// Where ``HelperConnection`` puts the socket.
    public static let descriptor: Int32 = 3

    /// Serves until the daemon goes; returns the exit status. Call it in `main`, before any thread.
    ///
    /// `command` gives an account's argument vector (its first word an absolute path or a name in PATH), read from the
    /// configuration as it is at that moment; nil if the account has none. `application` gives likewise the command of
    /// a scheme, whose word `{url}` stands for a link.
    ///
    /// A death signal from the kernel is not asked for: the closing socket comes at the same moment and leaves time
    /// to kill the commands at work, which nobody else would do.
    public static func run(
        descriptor: Int32 = descriptor, application: @escaping (String) -> [String]? = { _ in nil },
        command: @escaping (String) -> [String]?
    ) -> Int32 {
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 else { return EX_USAGE }
        // Secrets pass through here: no core, no ptrace.
        guard clinux_refuse_dumps() == 0 else { return EX_OSERR }
        closeDescriptors(from: descriptor + 1)
        closeOnExec(descriptor)
        // A stop request to the whole group is the daemon's to answer: it may still need a secret to revoke a token.
        for number in [SIGHUP, SIGINT, SIGTERM, SIGPIPE] { signal(number, SIG_IGN) }
        var loop = HelperLoop(
            socket: descriptor, environment: CleanEnvironment.current(),
            applicationEnvironment: CleanEnvironment.current(forApplications: true), application: application,
            command: command
        )
        loop.run()
        // Not by way of `exit`: threads may still be at the bus, and would be at work in what it takes down.
        if loop.hasUsedBus { _exit(EX_OK) }
        return EX_OK
    }
}
