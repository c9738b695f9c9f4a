public import ServiceLifecycle
internal import Synchronization

/// A small HTTP/1.1 server for local sockets, used by the socket API, the callback receiver and the sandbox. Its public
/// interface uses no type of the engine (the folder Engine).
public final class HTTPServer: Service {
    /// Handles one request. It is cancelled when the client disconnects or the server shuts down.
    public typealias Handler = @Sendable (ServerRequest) async -> ServerResponse
    /// Handles a request that needs no waiting, synchronously on the server's thread. Nil passes the request to the
    /// ``Handler``. The fields of its last response stay in memory, so they must not contain a secret.
    public typealias ImmediateHandler = @Sendable (ServerRequest) -> ServerResponse?

    private let rules: ConnectionRules
    private let incoming: AsyncStream<Exchange>
    private let exchanges: AsyncStream<Exchange>.Continuation
    private let handler: Handler
    private let state = Mutex(State())

    private struct State {
        var listeners: [Listener] = []
        /// The files of its Unix sockets.
        var files: [SocketFile] = []
        var isShuttingDown = false
    }

    /// One thread serves every local socket of the process. It is started for the first ``listen(at:)``.
    private static let started: Result<EventLoop, ServerError> = {
        do throws(ServerError) {
            return .success(try EventLoop.started())
        } catch {
            return .failure(error)
        }
    }()

    /// Nil if the thread could not be started; then no server listens.
    static var loop: EventLoop? { try? started.get() }

    /// - Parameters:
    ///   - limits: limits of size, time and number of connections.
    ///   - accepts: connections from peers for which this returns false are closed without a response.
    ///   - ownerOf: the uid that owns the client's TCP socket, looked up by the peer's addresses, on the server's
    ///     thread once a request is complete. The result becomes ``ServerRequest/owner`` if the connection was
    ///     established before and after the look-up.
    ///   - refusal: the response to a request that violates HTTP or a limit, by status (400, 408, 413, 431, 503, 505).
    ///   - isLost: called once for each listening socket that another process has shut down. Such a socket accepts no
    ///     further connections.
    ///   - immediate: see ``ImmediateHandler``.
    ///   - handler: see ``Handler``.
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

    /// Binds a socket and listens on it. May be called again for further addresses. Returns the port (0 for a Unix
    /// socket). Throws ``ServerError``.
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

    /// Stops listening on one port at once. Open connections stay.
    public func stopListening(port: Int) {
        let closing = state.withLock { state in
            let found = state.listeners.filter { $0.port == port }
            state.listeners.removeAll { $0.port == port }
            return found
        }
        for listener in closing { HTTPServer.loop?.remove(listener) }
    }

    /// Removes the files of its Unix sockets, as far as they are still its own.
    package func removeSocketFiles() {
        let files = state.withLock { state in
            defer { state.files = [] }
            return state.files
        }
        for file in files { file.remove() }
    }

    /// Ends the server: accepts no further connection and closes all open connections. If the last response of a
    /// connection is being sent, it is completed first. Jobs that are given to the event loop later run after the
    /// closing. ``run()`` returns soon after.
    public func close() {
        stopListening()
        HTTPServer.loop?.execute { [rules] in rules.closeAll() }
        exchanges.finish()
    }

    /// Serves until it is closed, cancelled or gracefully shut down. Then it stops listening, waits up to
    /// ``drainTimeout`` for running handlers, closes every connection, waits up to ``drainTimeout`` for responses that
    /// are being sent, and returns. Never throws.
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
                // closed after that. So once a client's connection is refused, this process handles no more requests.
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
        // The process may end when this function returns. Bytes that were not sent by then would be lost.
        let unsent = Outstanding()
        unsent.enter()
        loop.execute { [rules] in rules.closeAll { unsent.leave() } }
        await unsent.wait(atMost: HTTPServer.drainTimeout)
    }

    /// How long running handlers may take after the shutdown began. The broker wakes every waiting handler when the
    /// shutdown begins.
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
    /// Returns after the thread that serves the sockets has run a job. If that thread hangs, this function does not
    /// return. The watchdog uses it: a process that does not serve its sockets has to be restarted.
    public static func turn() async {
        guard let loop else { return }
        await withCheckedContinuation { turned in loop.execute { turned.resume() } }
    }
}
