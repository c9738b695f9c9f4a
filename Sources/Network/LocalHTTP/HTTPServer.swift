public import ServiceLifecycle
internal import Synchronization

/// A small HTTP/1.1 server for local sockets. Its public interface uses no type of the engine (the folder Engine).
public final class HTTPServer: Service {
    /// Cancelled when the client disconnects or the server shuts down.
    public typealias Handler = @Sendable (ServerRequest) async -> ServerResponse
    /// For a request that needs no waiting, on the server's thread. Nil passes the request to the ``Handler``. The
    /// fields of its last response stay in memory, so they must not contain a secret.
    public typealias ImmediateHandler = @Sendable (ServerRequest) -> ServerResponse?
    private let rules: ConnectionRules
    private let incoming: AsyncStream<Exchange>
    private let exchanges: AsyncStream<Exchange>.Continuation
    private let handler: Handler
    private let state = Mutex(State())

    private struct State {
        var listeners: [Listener] = []
        /// Of its Unix sockets.
        var files: [SocketFile] = []
        var isShuttingDown = false
    }

    /// For every local socket of the process, from the first ``listen(at:)`` on.
    private static let started = Result { () throws(ServerError) in try EventLoop.started() }
    /// Nil if the thread could not be started; then no server listens.
    static var loop: EventLoop? { try? started.get() }

    /// - Parameters:
    ///   - accepts: connections from peers for which this returns false are closed without a response.
    ///   - ownerOf: the uid that owns the client's TCP socket, looked up once a request is complete; it becomes
    /// ``ServerRequest/owner`` if the connection was established before and after.
    ///   - refusal: for a request that violates HTTP or a limit, by status (400, 408, 413, 431, 503, 505).
    ///   - isLost: called once for each listening socket that another process has shut down.
    public init(
        limits: ServerLimits = ServerLimits(), accepts: @escaping @Sendable (Peer) -> Bool = { _ in true },
        ownerOf: (@Sendable (Peer) -> UInt32?)? = nil,
        refusal: @escaping @Sendable (Int) -> ServerResponse = { ServerResponse(status: $0) },
        isLost: @escaping @Sendable () -> Void = {}, immediate: ImmediateHandler? = nil, handler: @escaping Handler
    ) {
        self.handler = handler
        let (incoming, exchanges) = AsyncStream<Exchange>.makeStream()
        (self.incoming, self.exchanges) = (incoming, exchanges)
        rules = ConnectionRules(
            limits: limits, accepts: accepts, ownerOf: ownerOf, refusal: refusal, immediate: immediate,
            handOver: { exchange in
                if case .terminated = exchanges.yield(exchange) { false } else { true }
            }, isLost: isLost)
    }

    /// May be called again for further addresses. Returns the port (0 for a Unix socket). Throws ``ServerError``.
    public func listen(at address: ListenAddress) throws(ServerError) -> Int {
        let loop = try HTTPServer.started.get()
        let socket = try ListeningSocket.open(address)
        let file = socket.file
        let listener = Listener(socket, server: rules)
        try loop.add(listener)
        let isOpen = state.withLock { state in
            if let file { state.files.append(file) }
            guard !state.isShuttingDown else { return false }
            state.listeners.append(listener)
            return true
        }
        if !isOpen { loop.remove(listener) }
        return listener.port
    }

    /// Open connections stay.
    public func stopListening(port: Int) {
        let closing = state.withLock { state in
            let found = state.listeners.filter { $0.port == port }
            state.listeners.removeAll { $0.port == port }
            return found
        }
        for listener in closing { HTTPServer.loop?.remove(listener) }
    }

    /// As far as they are still its own.
    package func removeSocketFiles() {
        let files = state.withLock { state in
            defer { state.files = [] }
            return state.files
        }
        for file in files { file.remove() }
    }

    /// Accepts no further connection and closes all open ones. If the last response of a connection is being sent, it
    /// is completed first. ``run()`` returns soon after.
    public func close() {
        stopListening()
        HTTPServer.loop?.execute { [rules] in rules.closeAll() }
        exchanges.finish()
    }

    /// Serves until it is closed, cancelled or gracefully shut down. Then it stops listening, waits up to
    /// ``drainTimeout`` for running handlers, closes every connection, and waits up to ``drainTimeout`` for responses
    /// that are being sent. Never throws.
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
                // From now on requests over open connections get 503. The listeners are closed after that: once a
                // client's connection is refused, this process handles no more requests.
                self.exchanges.finish()
                self.stopListening()
            }
            stopListening()
            exchanges.finish()
            if rules.limits.cancelsAtShutdown { group.cancelAll() }
            await unfinished.wait(atMost: HTTPServer.drainTimeout)
            group.cancelAll()
        }
        guard let loop = HTTPServer.loop else { return }
        // The process may end when this function returns, and unsent bytes would be lost.
        let unsent = Outstanding()
        unsent.enter()
        loop.execute { [rules] in rules.closeAll { unsent.leave() } }
        await unsent.wait(atMost: HTTPServer.drainTimeout)
    }

    /// The broker wakes every waiting handler when the shutdown begins.
    static let drainTimeout: Duration = .seconds(1)

    private func stopListening() {
        let closing = state.withLock { state in
            state.isShuttingDown = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in closing { HTTPServer.loop?.remove(listener) }
        HTTPServer.loop?.execute { [rules] in rules.registry.isClosing = true }
    }
}

extension HTTPServer {
    /// Returns after the thread that serves the sockets has run a job, for the watchdog: a process that does not serve
    /// its sockets has to be restarted.
    public static func turn() async {
        guard let loop else { return }
        await withCheckedContinuation { turned in loop.execute { turned.resume() } }
    }
}
