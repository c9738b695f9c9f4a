/// What the connections of a server share: its limits and functions, its registry, and where requests go that have to
/// wait. The variables are used on the loop's thread only, hence `@unchecked Sendable`.
final class ConnectionRules: @unchecked Sendable {
    let limits: ServerLimits
    let accepts: @Sendable (Peer) -> Bool
    let ownerOf: (@Sendable (Peer) -> UInt32?)?
    let refusal: @Sendable (Int) -> ServerResponse
    let immediate: (@Sendable (ServerRequest) -> ServerResponse?)?
    /// Takes a request that has to wait. False if the server is shutting down.
    let handOver: @Sendable (Exchange) -> Bool
    /// Called when a listening socket has been shut down by another process.
    let isLost: @Sendable () -> Void
    /// The heads that the immediate handler answers again and again.
    let heads: HeadCache?
    /// See ``RepeatedHead``. For responses of the immediate handler only.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var repeatedHead = RepeatedHead()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var registry: ConnectionRegistry

    init(
        limits: ServerLimits, accepts: @escaping @Sendable (Peer) -> Bool, ownerOf: (@Sendable (Peer) -> UInt32?)?,
        refusal: @escaping @Sendable (Int) -> ServerResponse,
        immediate: (@Sendable (ServerRequest) -> ServerResponse?)?,
        handOver: @escaping @Sendable (Exchange) -> Bool, isLost: @escaping @Sendable () -> Void = {}
    ) {
        self.limits = limits
        self.accepts = accepts
        self.ownerOf = ownerOf
        self.refusal = refusal
        self.immediate = immediate
        self.handOver = handOver
        self.isLost = isLost
        heads = immediate == nil ? nil : HeadCache()
        registry = ConnectionRegistry(most: limits.maxConnections)
    }

    /// For a connection that is not open.
    static let nobody = ConnectionRules(
        limits: ServerLimits(), accepts: { _ in false }, ownerOf: nil, refusal: { ServerResponse(status: $0) },
        immediate: nil, handOver: { _ in false })

    /// Adds a connection. If the maximum is reached, the oldest connection without a complete request is closed to make
    /// room. Returns false if every connection is working on a complete request, or the server is closing.
    func admit(_ connection: HTTPConnection) -> Bool {
        guard !registry.isClosing else { return false }
        if registry.isFull {
            // Attack: a client that opens connections and sends nothing must not block other clients.
            guard let oldest = registry.oldestIdle else { return false }
            oldest.drop()
        }
        registry.append(connection)
        return true
    }

    /// Called when no response is left that is still being sent, after ``closeAll(_:)``.
    private var whenSent: (@Sendable () -> Void)?

    /// Closes every connection, and lets no more in. What was written before is still sent; `sent` is called then.
    func closeAll(_ sent: @escaping @Sendable () -> Void = {}) {
        registry.isClosing = true
        for connection in registry.all { connection.end() }
        whenSent = sent
        noteSent()
    }

    /// A connection has sent all its bytes, or is closed.
    func noteSent() {
        guard whenSent != nil, !registry.all.contains(where: \.isBlocked) else { return }
        whenSent.take()?()
    }
}
