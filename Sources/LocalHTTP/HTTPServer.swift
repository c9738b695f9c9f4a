internal import Glibc
internal import NIOCore
internal import NIOPosix
public import ServiceLifecycle
internal import Synchronization

/// A small HTTP/1.1 server for local sockets, used by the socket API, the callback receiver and the sandbox. No type of
/// the underlying engine (SwiftNIO) appears in its interface.
public final class HTTPServer: Service {
    /// Handles one request. It is cancelled when the client disconnects or the server shuts down.
    public typealias Handler = @Sendable (ServerRequest) async -> ServerResponse
    /// Handles a request that needs no waiting, synchronously on the server's thread. Nil passes the request to the
    /// ``Handler``.
    public typealias ImmediateHandler = @Sendable (ServerRequest) -> ServerResponse?

    let limits: ServerLimits
    let accepts: @Sendable (Peer) -> Bool
    let ownerOf: (@Sendable (Peer) -> UInt32?)?
    let immediate: ImmediateHandler?
    let refusal: @Sendable (Int) -> ServerResponse
    let exchanges: AsyncStream<Exchange>.Continuation
    let registry: ConnectionRegistry
    private let incoming: AsyncStream<Exchange>
    private let handler: Handler
    private let state = Mutex(State())

    private struct Listener {
        let port: Int
        let channel: any Channel
    }

    private struct State {
        var listeners: [Listener] = []
        var isShuttingDown = false
    }

    /// One thread serves every local socket of the process. Handling a request takes microseconds there, and each
    /// further thread costs memory.
    static let loop: any EventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()

    /// - Parameters:
    ///   - limits: limits of size, time and number of connections.
    ///   - accepts: connections from peers for which this returns false are closed without a response.
    ///   - ownerOf: the uid that owns the client's TCP socket, looked up by the peer's addresses, on the server's
    ///     thread once a request is complete. The result becomes ``ServerRequest/owner`` if the connection was
    ///     established before and after the look-up.
    ///   - refusal: the response to a request that violates HTTP or a limit, by status (400, 408, 413, 431, 503, 505).
    ///   - immediate: see ``ImmediateHandler``.
    ///   - handler: see ``Handler``.
    public init(
        limits: ServerLimits = ServerLimits(), accepts: @escaping @Sendable (Peer) -> Bool = { _ in true },
        ownerOf: (@Sendable (Peer) -> UInt32?)? = nil,
        refusal: @escaping @Sendable (Int) -> ServerResponse = { ServerResponse(status: $0) },
        immediate: ImmediateHandler? = nil, handler: @escaping Handler
    ) {
        self.limits = limits
        self.accepts = accepts
        self.ownerOf = ownerOf
        self.refusal = refusal
        self.immediate = immediate
        self.handler = handler
        registry = ConnectionRegistry(limits: limits, loop: HTTPServer.loop)
        (incoming, exchanges) = AsyncStream.makeStream()
    }

    /// Binds and listens before it returns; may be called again for further addresses. Returns the port (0 for a Unix
    /// socket). Throws ``ServerError``. It blocks until the event loop has run, so it must not be called from a
    /// handler.
    public func listen(at address: ListenAddress) throws(ServerError) -> Int {
        let (descriptor, port) = try ListeningSocket.open(address)
        let bootstrap = ServerBootstrap(group: HTTPServer.loop)
            .serverChannelInitializer { channel in
                // If the process has no free file descriptor, accept again after a delay instead of in a busy loop.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .serverChannelOption(.backlog, value: ListeningSocket.backlog)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelInitializer { [self] channel in
                // Plain statements instead of `makeCompletedFuture`, whose generic code costs as much as parsing the
                // request.
                do {
                    try HTTPServer.tune(channel)
                    try channel.pipeline.syncOperations.addHandler(HTTPConnection(server: self))
                    return channel.eventLoop.makeSucceededVoidFuture()
                } catch {
                    return channel.eventLoop.makeFailedFuture(error)
                }
            }
        let channel: any Channel
        do {
            channel = try bootstrap.withBoundSocket(descriptor).wait()
        } catch {
            // The engine has taken over the descriptor and has closed it.
            throw .system(call: "listen", errno: (error as? IOError)?.errnoCode ?? EIO)
        }
        let mustClose = state.withLock { state in
            guard !state.isShuttingDown else { return true }
            state.listeners.append(Listener(port: port, channel: channel))
            return false
        }
        if mustClose { channel.close(promise: nil) }
        return port
    }

    private static func tune(_ channel: any Channel) throws {
        let options = channel.syncOptions
        // Set here, because as options of the bootstrap they would cost several futures per connection.
        try options?.setOption(.maxMessagesPerRead, value: 1)
        // With these marks "writable" means that the kernel has accepted every byte.
        try options?.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
    }

    /// Stops listening on one port at once. Open connections stay.
    public func stopListening(port: Int) {
        let closing = state.withLock { state in
            let found = state.listeners.filter { $0.port == port }
            state.listeners.removeAll { $0.port == port }
            return found
        }
        for listener in closing { listener.channel.close(promise: nil) }
    }

    /// Ends the server: accepts no further connection and closes all open ones; a last response that is being sent is
    /// still completed. The closing happens before any later work on the event loop. ``run()`` returns soon after.
    public func close() {
        stopListening()
        registry.closeAll()
        exchanges.finish()
    }

    /// Serves until it is closed, cancelled or gracefully shut down. Then it stops listening, waits up to
    /// ``drainTimeout`` for running handlers, closes every connection and returns. Never throws.
    public func run() async throws {
        await withDiscardingTaskGroup { group in
            let unfinished = Outstanding()
            await withGracefulShutdownHandler {
                for await exchange in incoming {
                    unfinished.enter()
                    group.addTask { [handler] in
                        await exchange.perform(handler)
                        unfinished.leave()
                    }
                }
            } onGracefulShutdown: {
                // From now on the server itself responds with 503 to requests over open connections. The listeners are
                // closed after that: a client whose connection is refused can rely on it that the old process takes no
                // more requests.
                self.exchanges.finish()
                self.stopListening()
            }
            stopListening()
            exchanges.finish()
            if limits.cancelsAtShutdown { group.cancelAll() }
            await unfinished.wait(atMost: HTTPServer.drainTimeout)
            group.cancelAll()
        }
        registry.closeAll()
    }

    /// How long running handlers may take after the shutdown began. The broker wakes every waiting handler when it
    /// begins.
    static let drainTimeout: Duration = .seconds(1)

    private func stopListening() {
        let closing = state.withLock { state in
            state.isShuttingDown = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in closing { listener.channel.close(promise: nil) }
        registry.beginClosing()
    }
}
