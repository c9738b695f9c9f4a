import Glibc
import HTTPMessages
import Synchronization

@testable import LocalHTTP

/// The server's connections over real sockets, in steps, with a clock of the law's own. Each byte of an input is a step:
/// requests that arrive in pieces, responses that are read in pieces or not at all, handlers that answer late, clients
/// that leave, time that passes. Whatever the order, a client gets the responses to its requests, whole and in order.
enum ConnectionLaw {
    static func check(_ bytes: [UInt8]) throws {
        let play = try ConnectionPlay()
        for byte in bytes.prefix(400) { try play.step(byte) }
        try play.end()
    }
}

/// A loop without a thread, and two clients at a time.
private final class ConnectionPlay {
    private let loop: EventLoop
    private let rules: ConnectionRules
    private let clock: Clock
    private var clients: [PlayedClient] = []
    private var current = 0

    final class Clock: Sendable {
        let time = Atomic<Int64>(1_000_000_000)
    }

    private final class Handed: Sendable {
        let exchanges = Mutex<[Exchange]>([])
    }
    private let handed = Handed()

    init() throws {
        let clock = Clock()
        self.clock = clock
        loop = try EventLoop { clock.time.load(ordering: .relaxed) }
        var limits = ServerLimits()
        limits.maxHead = 1_024
        limits.maxBody = 1_024
        limits.requestTimeout = .seconds(2)
        limits.writeTimeout = .seconds(3)
        rules = ConnectionRules(
            limits: limits, accepts: { _ in true }, ownerOf: nil,
            refusal: { ServerResponse(status: $0, body: PlayedClient.refusalBody) },
            immediate: { request in request.path.hasSuffix("/now") ? PlayedClient.response(to: request.path) : nil },
            handOver: { [handed] exchange in
                handed.exchanges.withLock { $0.append(exchange) }
                return true
            })
        clients = [try connect(), try connect()]
    }

    deinit { loop.forgetClosed() }

    private func connect() throws -> PlayedClient {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC
        try hold("there are descriptors", unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        // The smallest buffer that the kernel has: large responses go out in many pieces.
        var size: Int32 = 1
        unsafe setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let client = PlayedClient(ends[1])
        loop.freeConnection().open(Descriptor(ends[0]), .local(uid: 0, pid: 0), rules)
        return client
    }

    // MARK: Steps

    func step(_ byte: UInt8) throws {
        let argument = Int(byte >> 3)
        let client = clients[current]
        switch byte & 7 {
        case 0: client.send(pieces: argument + 1)
        case 1: try client.read(atMost: (argument + 1) * 37)
        case 2: client.send(bytes: (argument + 1) * 5)
        case 3: try turn()
        case 4: try pass(Int64(argument + 1) * 90_000_000)
        case 5: answer(argument)
        case 6:
            switch argument % 4 {
            case 0: client.sendNonsense()
            case 1: client.endSending()
            default:
                client.leave()
                clients[current] = try connect()
            }
        default: current = 1 - current
        }
    }

    /// Lets the loop handle what has happened. It must come to rest.
    private func turn() throws {
        for _ in 0..<5_000 where !loop.turn(waits: false) { return }
        try hold("the loop comes to rest", false)
    }

    private func pass(_ time: Int64) throws {
        clock.time.wrappingAdd(time, ordering: .relaxed)
        for client in clients { client.elapsed += time }
        try turn()
    }

    /// Answers the oldest request that waits, as a whole or in pieces.
    private func answer(_ argument: Int) {
        guard let exchange = handed.exchanges.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
        let response = PlayedClient.response(to: exchange.request.path)
        exchange.connection.send(response, of: exchange, isHead: false)
    }

    // MARK: The end

    func end() throws {
        try settle()
        for client in clients { try client.checkComplete() }
        // Nobody is in the middle of anything for longer than a deadline.
        for _ in 0..<8 { try pass(1_000_000_000) }
        try settle()
        for client in clients { try client.checkAfterDeadlines() }
        for client in clients { client.leave() }
        try turn()
        try hold("a connection whose client has left is closed", rules.registry.count == 0)
        for _ in 0..<20 { try pass(1_000_000_000) }
        try hold("nothing is due when there is no connection", loop.isAtRest)
    }

    /// Turns, reads and answers until nothing changes.
    private func settle() throws {
        for _ in 0..<20_000 {
            try turn()
            var hasChanged = false
            for client in clients where try client.read(atMost: .max) > 0 { hasChanged = true }
            while handed.exchanges.withLock({ !$0.isEmpty }) {
                answer(0)
                hasChanged = true
            }
            for connection in rules.registry.all {
                try hold("no more is kept than may be sent ahead", connection.reader.waitingBytes <= 256 * 1_024)
            }
            if !hasChanged { return }
        }
        try hold("everything is done at some time", false)
    }
}
