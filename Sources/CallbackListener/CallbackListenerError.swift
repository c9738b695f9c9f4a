// Every failure comes before the browser opens, and says what to do.

import Glibc

/// Why a redirect URI cannot be listened behind. `errno` values are the system's.
public enum CallbackListenerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The port is taken; the uid that holds it, where the kernel tells.
    case portInUse(port: Int, holder: UInt32?)
    /// Not a redirect URI for a loopback listener; the sentence says why.
    case unsuitable(reason: String)
    /// No more flows: the daemon is ending.
    case shuttingDown
    /// A system call failed.
    case system(call: String, errno: Int32)

    public var description: String {
        switch self {
        case .portInUse(let port, let holder):
            let who = holder.map { $0 == getuid() ? " by a program of yours" : " by uid \($0)" } ?? ""
            return "port \(port) is in use\(who); see which by: ss -ltnp 'sport = :\(port)', and end it, or take "
                + "another port (redirect_uri in the configuration, or --callback-port)"
        case .unsuitable(let reason): return reason
        case .shuttingDown: return "the daemon is shutting down"
        case .system(let call, EACCES): return "the port may not be used by this user (\(call)); configure another one"
        case .system(let call, let code): return "\(unsafe String(cString: strerror(code))) (\(call))"
        }
    }
}
