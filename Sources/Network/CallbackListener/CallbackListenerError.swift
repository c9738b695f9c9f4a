// These errors occur before the browser is opened.

/// Why no listener can be opened for a redirect URI. `errno` values are the system's.
public enum CallbackListenerError: Error, Sendable, Equatable {
    /// Another program uses the port; `holder` is its uid, if the kernel tells it. `host` is an address without brackets.
    case portInUse(host: String, port: Int, holder: UInt32?)
    /// The redirect URI cannot be used with a loopback listener; `reason` says why.
    case unsuitable(reason: String)
    /// The daemon is shutting down and opens no more listeners.
    case shuttingDown
    /// A system call failed. `port` is 0 if a free one was asked for.
    case system(host: String, port: Int, call: String, errno: Int32)
}
