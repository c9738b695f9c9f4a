internal import NIOCore

/// All open connections of a server, over all its listening sockets. It enforces the maximum number and the deadlines.
/// Used on the event loop only (`assertInEventLoop` checks this in debug builds), hence `@unchecked Sendable`.
final class ConnectionRegistry: @unchecked Sendable {
    private let limits: ServerLimits
    private let loop: any EventLoop
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    private var isSweeping = false
    /// The server is shutting down: each connection closes after its current response.
    private(set) var isClosing = false

    init(limits: ServerLimits, loop: any EventLoop) {
        self.limits = limits
        self.loop = loop
    }

    /// Adds a connection. If the maximum is reached, the oldest connection without a complete request is closed to make
    /// room. Returns false if every connection is working on a complete request, or the server is closing.
    func admit(_ connection: HTTPConnection) -> Bool {
        loop.assertInEventLoop()
        guard !isClosing else { return false }
        if connections.count >= limits.maxConnections {
            // Attack: a client that opens connections and sends nothing must not block other clients.
            let idle = connections.values.lazy.filter(\.isIdle)
            guard let oldest = idle.min(by: { $0.number < $1.number }) else { return false }
            oldest.drop()
        }
        connections[ObjectIdentifier(connection)] = connection
        return true
    }

    func remove(_ connection: HTTPConnection) {
        loop.assertInEventLoop()
        connections[ObjectIdentifier(connection)] = nil
    }

    /// From now on no connection is admitted, and each connection closes after its current response.
    func beginClosing() {
        loop.execute { self.isClosing = true }
    }

    /// Closes every connection. What was written before is still sent.
    func closeAll() {
        loop.execute {
            self.isClosing = true
            for connection in Array(self.connections.values) { connection.end() }
        }
    }

    /// Checks all deadlines with one repeating timer, which runs only while some connection has a deadline. An idle
    /// daemon does not wake up.
    func watch() {
        guard !isSweeping else { return }
        isSweeping = true
        loop.scheduleTask(in: .milliseconds(250)) { [self] in
            isSweeping = false
            let now = NIODeadline.now()
            for connection in Array(connections.values) { connection.check(at: now) }
            if connections.values.contains(where: \.hasDeadline) { watch() }
        }
    }
}
