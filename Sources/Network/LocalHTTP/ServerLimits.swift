public struct ServerLimits: Sendable {
    /// Request line and header fields, in bytes.
    public var maxHead = 16_384
    public var maxBody = 65_536
    /// For a request's head, and again for its body, from the first byte on, or from the connection if
    /// ``isSingleRequest``.
    public var requestTimeout: Duration = .seconds(5)
    /// How long a client may leave a response unread. 10 s after the vault is locked no token may be in memory.
    public var writeTimeout: Duration = .seconds(8)
    /// Over all listening sockets. For a further client the oldest connection without a complete request is closed; if
    /// there is none, one of the process that has most.
    public var maxConnections = 4_096
    /// A request with `Expect` or `Upgrade` is then rejected with 400.
    public var isSingleRequest = false
    /// Running handlers are cancelled as soon as the shutdown begins, so that they can still respond.
    public var cancelsAtShutdown = false

    public init() {}
}
