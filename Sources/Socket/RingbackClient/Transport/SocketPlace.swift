import Glibc

/// Where the daemon's socket is: never in a directory that others may write to, so there is no
/// fallback to a shared one.
package enum SocketPlace {
    /// - Parameter stated: the path the caller named, which goes before the environment.
    /// - Throws: `no_daemon` if neither `RINGBACK_SOCK` nor `XDG_RUNTIME_DIR` says where, and `/run/user/UID` has none.
    package static func path(stated: String? = nil) throws(RingbackError) -> String {
        try path(stated: stated, environment: variable)
    }

    /// - Parameter logins: the directory in which systemd's logins have a directory for each user.
    static func path(
        stated: String?, environment: (String) -> String?, logins: String = "/run/user"
    ) throws(RingbackError) -> String {
        if let stated, !stated.isEmpty { return stated }
        if let path = environment("RINGBACK_SOCK"), !path.isEmpty { return path }
        let own = "\(logins)/\(getuid())"
        // The base directory specification wants an absolute path and has a relative one ignored.
        if let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") {
            let path = usualPath(in: directory)
            // A Snap has /run/user/UID/snap.NAME. Any other directory was chosen: its user wants no other daemon.
            guard directory.hasPrefix(own + "/"), !isOwn(path, S_IFSOCK), hasSocket(own) else { return path }
            return usualPath(in: own)
        }
        if hasSocket(own) { return usualPath(in: own) }
        throw RingbackError(
            .noDaemon,
            "There is no place for the daemon's socket: XDG_RUNTIME_DIR is not set. \(advice(hasSystemd: hasSystemd)) "
                + "Or name the socket with RINGBACK_SOCK.",
            recovery: .fixConfiguration)
    }

    /// True if the user's own runtime directory has a daemon's socket, and nobody else can put one there.
    private static func hasSocket(_ directory: String) -> Bool {
        isOwn(directory, S_IFDIR) && isOwn(directory + "/ringback", S_IFDIR)
            && isOwn(usualPath(in: directory), S_IFSOCK)
    }

    /// True for a file of this kind and this user's; of directories, only if nobody else may write to it.
    private static func isOwn(_ path: String, _ kind: mode_t) -> Bool {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_uid == getuid(), status.st_mode & S_IFMT == kind else {
            return false
        }
        return kind != S_IFDIR || status.st_mode & 0o022 == 0
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
