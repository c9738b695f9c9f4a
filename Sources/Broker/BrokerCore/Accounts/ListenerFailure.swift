/// Why no listener can be opened for a redirect URI, or for an address that a browser is started with.
public struct ListenerFailure: Sendable, Equatable {
    public enum Cause: Sendable, Equatable {
        /// Another program listens there. Its uid, if the kernel tells it.
        case portTaken(by: UInt32?)
        /// A system call failed with this `errno`.
        case system(call: String, errno: Int32)
        /// There can be no such address. The reason says why.
        case unsuitable(Reason)
    }

    public let cause: Cause
    /// The address without brackets, such as `::1`; nil if it is not known.
    public let host: String?
    /// Nil if it is not known.
    public let port: Int?
    /// The setting of the account that says where to listen; nil if the address is Ringback's own.
    public let setting: String?

    public init(_ cause: Cause, host: String? = nil, port: Int? = nil, setting: String? = nil) {
        self.cause = cause
        self.host = host
        self.port = port
        self.setting = setting
    }
}
