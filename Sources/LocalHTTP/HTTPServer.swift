internal import Glibc
internal import NIOCore
internal import NIOPosix
public import ServiceLifecycle
internal import Synchronization

/// A small HTTP/1.1 server for local sockets. Three servers share it: the socket API, the callback listener, the
/// sandbox. Its engine is its own business: no type of it appears here.
public final class HTTPServer: Service {
    /// Answers one request. Cancelled when the client goes away or the server shuts down.
    public typealias Handler = @Sendable (ServerRequest) async -> ServerResponse
    /// Answers at once what needs no waiting, on the server's own thread; nil leaves the request to the ``Handler``.
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

    /// One thread serves every local socket of the process: an answer takes microseconds, and a thread costs memory.
    static let loop: any EventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()

    /// - Parameters:
    ///   - limits: what a connection may cost.
    ///   - accepts: connections of other peers are closed without a byte.
    ///   - ownerOf: the uid of the socket that has the peer's addresses now (a TCP client's), asked on the server's own
    ///     thread once a request is whole; what it says becomes ``ServerRequest/owner`` if it holds for the connection.
    ///   - refusal: the answer to a request that broke HTTP or a limit, by status (400, 408, 413, 431, 503, 505).
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

    /// Binds and listens at once; may be called again for further addresses. Returns the port (0 for a Unix socket).
    /// Not to be called by a handler.
    public func listen(at address: ListenAddress) throws(ServerError) -> Int {
        let (descriptor, port) = try ListeningSocket.open(address)
        let bootstrap = ServerBootstrap(group: HTTPServer.loop)
            .serverChannelInitializer { channel in
                // Out of descriptors: wait for some to come back instead of asking again at once, for ever.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .serverChannelOption(.backlog, value: ListeningSocket.backlog)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelInitializer { [self] channel in
                // Plain statements: the generic shorthand costs as much as parsing the request.
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
            // The engine owns the descriptor by now, and has closed it.
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
        // Set here: as options of the bootstrap they would cost futures for every connection.
        try options?.setOption(.maxMessagesPerRead, value: 1)
        // "Writable" then means that the kernel has taken every byte.
        try options?.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
    }

    /// Closes one listening port now; connections that are open stay.
    public func stopListening(port: Int) {
        let closing = state.withLock { state in
            let found = state.listeners.filter { $0.port == port }
            state.listeners.removeAll { $0.port == port }
            return found
        }
        for listener in closing { listener.channel.close(promise: nil) }
    }

    /// Ends the server now: nobody is let in, and every connection is closed, but for a last answer that is on its way.
    /// Takes effect before anything that is sent after it returns; ``run()`` returns soon after.
    public func close() {
        stopListening()
        registry.closeAll()
        exchanges.finish()
    }

    /// Serves until closed, cancelled or gracefully shut down: then it stops listening, gives the answers under way
    /// ``drainTimeout`` to be finished, closes every connection, and ends.
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
                // What comes from now on over connections that stand is refused with 503; who finds nobody listening any
                // more may rely on that.
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

    /// How long answers under way may take after the shutdown began. The broker wakes every waiter at once then.
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
