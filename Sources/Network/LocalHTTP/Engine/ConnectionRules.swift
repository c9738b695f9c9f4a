/// The values that the connections of a server share: its limits, callbacks and registry. The variables are used on the
/// loop's thread only, hence `@unchecked Sendable`.
final class ConnectionRules: @unchecked Sendable {
    let limits: ServerLimits
    let accepts: @Sendable (Peer) -> Bool
    let ownerOf: (@Sendable (Peer) -> UInt32?)?
    let refusal: @Sendable (Int) -> ServerResponse
    let immediate: (@Sendable (ServerRequest) -> ServerResponse?)?
    /// Passes a request to the asynchronous handler. False if the server is shutting down.
    let handOver: @Sendable (Exchange) -> Bool
    /// Called when a listening socket has been shut down by another process.
    let isLost: @Sendable () -> Void
    /// The request heads to which the immediate handler has responded, see ``HeadCache``.
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

    /// The rules of a connection that is not open.
    static let nobody = ConnectionRules(
        limits: ServerLimits(), accepts: { _ in false }, ownerOf: nil, refusal: { ServerResponse(status: $0) },
        immediate: nil, handOver: { _ in false })

    /// Adds a connection. If the maximum is reached, the oldest connection without a complete request is closed first. If
    /// there is none, the oldest of the process with most connections is closed (see ``ConnectionRegistry``). Returns
    /// false if no connection gives way, or if the server is closing.
    func admit(_ connection: HTTPConnection) -> Bool {
        guard !registry.isClosing else { return false }
        if registry.isFull {
            // Attack: a client opens connections and sends nothing, to block other clients.
            let now = connection.loop.now
            let former: HTTPConnection? =
                switch registry.oldestIdle(now: now) {
                case .found(let idle): idle
                case .noneIsIdle: registry.oldestOfCrowd(besides: connection.peer, now: now)
                case .notNow: nil
                }
            guard let former else { return false }
            former.drop()
        }
        registry.append(connection)
        return true
    }

    /// Called after ``closeAll(_:)``, when all responses are sent.
    private var whenSent: (@Sendable () -> Void)?

    /// Closes every connection and accepts no more. The last responses that are being sent are completed, those of streams
    /// excepted; then `sent` is called.
    func closeAll(_ sent: @escaping @Sendable () -> Void = {}) {
        registry.isClosing = true
        for connection in registry.all { connection.end() }
        whenSent = sent
        noteSent()
    }

    /// Called when a connection has sent all its bytes or is closed.
    func noteSent() {
        guard whenSent != nil, !registry.all.contains(where: \.isBlocked) else { return }
        whenSent.take()?()
    }
}
