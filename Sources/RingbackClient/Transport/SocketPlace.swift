import Glibc

/// Where the daemon's socket is: never in a directory that others may write to, so there is no
/// fallback to a shared one.
package enum SocketPlace {
    /// - Parameter stated: the path the caller named, which goes before the environment.
    /// - Throws: `no_daemon` if neither `RINGBACK_SOCK` nor `XDG_RUNTIME_DIR` says where.
    package static func path(stated: String? = nil) throws(RingbackError) -> String {
        try path(stated: stated, environment: variable)
    }

    static func path(stated: String?, environment: (String) -> String?) throws(RingbackError) -> String {
        if let stated, !stated.isEmpty { return stated }
        if let path = environment("RINGBACK_SOCK"), !path.isEmpty { return path }
        // The base directory specification wants an absolute path and has a relative one ignored.
        if let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") {
            return directory + "/ringback/ringback.sock"
        }
        throw RingbackError(
            .noDaemon,
            "There is no place for the daemon's socket: XDG_RUNTIME_DIR is not set. A login sets it; shells of sudo and su, "
                + "and jobs without a login, lack it. If the user has a login or lingers, set it to /run/user/\(getuid()). "
                + "Or name the socket with RINGBACK_SOCK.",
            recovery: .fixConfiguration)
    }

    /// A variable of this process's environment.
    package static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
