internal import NIOCore

/// The open connections of a server, over all its listening sockets: their number, their deadlines, and who gives way when it is full.
/// Touched on the event loop only, which `assertInEventLoop` checks in debug builds: hence unchecked.
final class ConnectionRegistry: @unchecked Sendable {
    private let limits: ServerLimits
    private let loop: any EventLoop
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    private var isSweeping = false
    /// The server is shutting down: every answer is its connection's last.
    private(set) var isClosing = false

    init(limits: ServerLimits, loop: any EventLoop) {
        self.limits = limits
        self.loop = loop
    }

    /// Takes a connection in, or returns false: all places are held by clients that have sent their request.
    func admit(_ connection: HTTPConnection) -> Bool {
        loop.assertInEventLoop()
        guard !isClosing else { return false }
        if connections.count >= limits.maxConnections {
            // A client that sits on its connection without a request must not keep a genuine one out.
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

    /// From now on nobody is admitted, and answers are last ones.
    func beginClosing() {
        loop.execute { self.isClosing = true }
    }

    /// Closes every connection, after what was written before.
    func closeAll() {
        loop.execute {
            self.isClosing = true
            for connection in Array(self.connections.values) { connection.end() }
        }
    }

    /// Sees to it that deadlines are kept: one timer for all of them, while there is any. An idle daemon does not wake.
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
