import Glibc
import Terminal

/// The user's runtime directory (XDG Base Directory Specification): the user's own, and closed to others.
enum RuntimeDirectory {
    /// The directory that `XDG_RUNTIME_DIR` names.
    static func find() throws(PlaceError) -> String {
        guard let directory = environment("XDG_RUNTIME_DIR") else { throw missing }
        guard directory.hasPrefix("/") else { throw refused(directory, "is not an absolute path") }
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            let code = errno
            guard code == ENOENT else { throw refused(directory, unsafe String(cString: strerror(code))) }
            throw refused(
                directory, "does not exist. It is made at login and removed when the last login ends", .linger)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw refused(directory, "is not a directory") }
        guard status.st_uid == geteuid() else {
            throw refused(
                directory,
                "belongs to uid \(status.st_uid), and this process has uid \(geteuid()): sudo and su keep the variable of "
                    + "the user that called them. Start ringbackd as a user of its own login", .ownLogin)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw refused(directory, "can be written by others", .remedy(.openToOthers, directory))
        }
        return directory
    }

    private static func refused(_ directory: String, _ reason: String, _ step: PlaceError.Step? = nil) -> PlaceError {
        PlaceError(reason: "XDG_RUNTIME_DIR=\(directory) \(reason)", step: step, otherwise: elsewhere)
    }

    /// Why there is none, as far as this process can tell.
    private static var missing: PlaceError {
        let usual = "/run/user/\(geteuid())"
        var status = stat()
        let (reason, step): (String, PlaceError.Step?) =
            if unsafe stat(usual, &status) == 0, status.st_uid == geteuid() {
                ("\(usual) is there", .variable(usual))
            } else if unsafe stat("/run/systemd/system", &status) == 0 {
                ("systemd makes one at login", .linger)
            } else {
                ("This system makes none, as is usual without systemd-logind and in containers", nil)
            }
        return PlaceError(
            reason: "there is no place for the socket: XDG_RUNTIME_DIR is not set. \(reason)", step: step,
            otherwise: elsewhere)
    }

    private static let elsewhere =
        "Or name a place in a directory of your own that is closed to others, for the daemon and for ringback: "
        + "--socket PATH or RINGBACK_SOCK=PATH"
}
