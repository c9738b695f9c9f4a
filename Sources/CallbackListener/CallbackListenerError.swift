// These errors occur before the browser is opened.

import Glibc

/// Why no listener can be opened for a redirect URI. `errno` values are the system's.
public enum CallbackListenerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Another program uses the port; `holder` is its uid, if the kernel tells it.
    case portInUse(port: Int, holder: UInt32?)
    /// The redirect URI cannot be used with a loopback listener; `reason` says why.
    case unsuitable(reason: String)
    /// The daemon is shutting down and opens no more listeners.
    case shuttingDown
    /// A system call failed.
    case system(call: String, errno: Int32)

    public var description: String {
        switch self {
        case .portInUse(let port, let holder):
            let who = holder.map { $0 == getuid() ? " by a program of yours" : " by uid \($0)" } ?? ""
            return "port \(port) is in use\(who)"
        case .unsuitable(let reason): return reason
        case .shuttingDown: return "the daemon is shutting down"
        case .system(let call, EACCES): return "the port may not be used by this user (\(call)); configure another one"
        case .system(let call, let code): return "\(unsafe String(cString: strerror(code))) (\(call))"
        }
    }
}
