import Glibc

/// Where the daemon's socket is: never in a directory that others may write to, so there is no
/// fallback to a shared one.
package enum SocketPlace {
    /// - Parameter stated: the path the caller named, which goes before the environment.
    /// - Throws: `no_daemon` if neither `RINGBACK_SOCK` nor `XDG_RUNTIME_DIR` says where.
    package static func path(stated: String? = nil) throws(RingbackError) -> String {
        try path(stated: stated, environment: variable, ofLogin: "/run/user/\(getuid())")
    }

    /// - Parameter ofLogin: the runtime directory that systemd makes at login. Its socket, if there is one, is used where
    ///   the variable is missing, since many programs start others without it (MCP clients, cron), and where it names a
    ///   directory in this one that has no socket (Snap).
    static func path(
        stated: String?, environment: (String) -> String?, ofLogin: String
    ) throws(RingbackError) -> String {
        if let stated, !stated.isEmpty { return stated }
        if let path = environment("RINGBACK_SOCK"), !path.isEmpty { return path }
        // The base directory specification wants an absolute path and has a relative one ignored.
        let directory = environment("XDG_RUNTIME_DIR").flatMap { $0.hasPrefix("/") ? $0 : nil }
        let named = directory.map(usualPath)
        if let named, unsafe access(named, F_OK) == 0 { return named }
        let login = usualPath(in: ofLogin)
        if directory?.hasPrefix(ofLogin + "/") ?? true, isOwn(ofLogin), unsafe access(login, F_OK) == 0 { return login }
        if let named { return named }
        throw RingbackError(
            .noDaemon,
            "There is no place for the daemon's socket: XDG_RUNTIME_DIR is not set. \(advice(hasSystemd: hasSystemd)) "
                + "Or name the socket with RINGBACK_SOCK.",
            recovery: .fixConfiguration)
    }

    /// True for a directory of this user that others cannot write to.
    private static func isOwn(_ directory: String) -> Bool {
        var status = stat()
        guard unsafe lstat(directory, &status) == 0 else { return false }
        return status.st_mode & S_IFMT == S_IFDIR && status.st_uid == getuid() && status.st_mode & 0o022 == 0
    }

    /// The owner of the runtime directory, if it is another user and the path is the usual one in it: sudo and su keep
    /// the variable of the user that called them.
    static func foreignOwner(ofDirectoryOf path: String) -> uid_t? {
        guard let directory = variable("XDG_RUNTIME_DIR"), path == usualPath(in: directory) else { return nil }
        var status = stat()
        guard unsafe stat(directory, &status) == 0, status.st_uid != getuid() else { return nil }
        return status.st_uid
    }

    static func words(ofOwner owner: uid_t) -> String {
        "XDG_RUNTIME_DIR belongs to uid \(owner), and this process has uid \(getuid()): sudo and su keep the variable "
            + "of the user that called them."
    }

    /// What to do about a runtime directory of another user.
    static func ownUser(_ owner: uid_t) -> String {
        "To use the daemon of uid \(owner), run the command as that user, without sudo and su."
    }

    private static func usualPath(in directory: String) -> String { directory + "/ringback/ringback.sock" }

    /// How the variable gets a value: a machine without systemd's logins has no directory for it.
    static func advice(hasSystemd: Bool) -> String {
        hasSystemd
            ? "A login sets it; shells of sudo and su, and jobs without a login, lack it. If the user has a login or "
                + "lingers, set it to /run/user/\(getuid())."
            : "This system sets none, as is usual in containers. Set it to a directory of your own that is closed to "
                + "others, for the daemon too."
    }

    /// True if systemd is this machine's init, as sd_booted(3) finds out.
    package static var hasSystemd: Bool { unsafe access("/run/systemd/system", F_OK) == 0 }

    /// A variable of this process's environment.
    package static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
