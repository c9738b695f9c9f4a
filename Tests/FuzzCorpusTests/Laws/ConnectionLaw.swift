import Glibc
import RingbackBase
import Synchronization

@testable import LocalHTTP

/// The server's connections over real sockets, in steps, with a clock of the law's own. Each byte of an input is a step:
/// requests that arrive in pieces, responses that are read in pieces or not at all, handlers that answer late or in a
/// stream, clients that leave, more connections than there may be, time that passes, the server's end. Whatever the order,
/// a client gets the responses to its requests, whole and in order.
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
    private var silent: [PlayedClient] = []
    private var hasEnded = false
    /// A connection whose request was being handled has given way to another.
    private var wasWronged = false

    final class Clock: Sendable {
        let time = Atomic<Int64>(1_000_000_000)
    }

    private final class Handed: Sendable {
        let exchanges = Mutex<[Exchange]>([])
        /// As a server that is shutting down.
        let refuses = Atomic<Bool>(false)
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
        limits.maxConnections = 4
        rules = ConnectionRules(
            limits: limits, accepts: { _ in true }, ownerOf: nil,
            refusal: { ServerResponse(status: $0, body: PlayedClient.refusalBody) },
            immediate: { request in request.path.hasSuffix("/now") ? PlayedClient.response(to: request.path) : nil },
            handOver: { [handed] exchange in
                if handed.refuses.load(ordering: .relaxed) { return false }
                handed.exchanges.withLock { $0.append(exchange) }
                return true
            })
        clients = [try connect(), try connect()]
    }

    deinit { loop.forgetClosed() }

    private func connect() throws -> PlayedClient {
        let client = PlayedClient(try open())
        client.mayBeRefused = handed.refuses.load(ordering: .relaxed)
        client.mayBeCut = hasEnded || rules.registry.count == 0
        return client
    }

    /// Opens a connection. If there are too many, the oldest idle one is closed, but none whose request is being handled.
    private func open() throws -> Int32 {
        if rules.registry.isFull { for client in clients { client.mayBeCut = true } }
        let busy = handed.exchanges.withLock { $0.filter(isBeingHandled) }
        defer { for exchange in busy where !isBeingHandled(exchange) { wasWronged = true } }
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC
        try hold("there are descriptors", unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        // The smallest buffer that the kernel has: large responses go out in many pieces.
        var size: Int32 = 1
        unsafe setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        loop.freeConnection().open(Descriptor(ends[0]), .local(uid: 0, pid: 0), rules)
        return ends[1]
    }

    private func isBeingHandled(_ exchange: Exchange) -> Bool {
        if case .answering(let current) = exchange.connection.phase { current === exchange } else { false }
    }

    func step(_ byte: UInt8) throws {
        let argument = Int(byte >> 3)
        let client = clients[current]
        switch byte & 7 {
        case 0: client.send(pieces: argument + 1)
        case 1: try client.read(atMost: (argument + 1) * 37)
        case 2: client.send(bytes: (argument + 1) * 5)
        case 3: try turn()
        case 4: try pass(Int64(argument + 1) * 90_000_000)
        case 5: answer()
        case 6:
            switch argument % 8 {
            case 0: client.sendNonsense()
            case 1: client.endSending()
            case 2: silent.append(PlayedClient(try open()))
            case 3: refuse(argument & 8 == 0)
            case 4: if argument > 23 { endServer() }
            default:
                client.leave()
                clients[current] = try connect()
            }
        default: current = 1 - current
        }
    }

    /// Lets the loop handle what has happened. It must come to rest.
    private func turn() throws {
        var isAtRest = false
        for _ in 0..<5_000 where !isAtRest { isAtRest = !loop.turn(waits: false) }
        try hold("the loop comes to rest", isAtRest)
        try hold("there are no more connections than there may be", rules.registry.count <= 4)
        try hold("no connection whose request is being handled gives way", !wasWronged)
    }

    private func pass(_ time: Int64) throws {
        clock.time.wrappingAdd(time, ordering: .relaxed)
        for client in clients { client.pass(time) }
        try turn()
    }

    private func answer() {
        guard let exchange = handed.exchanges.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
        let request = exchange.request
        guard request.path.hasSuffix("/stream") else {
            let response = PlayedClient.response(to: request.path)
            return exchange.connection.send(response, of: exchange, isHead: request.method == "HEAD")
        }
        let stream = AsyncStream<[UInt8]> { $0.finish() }
        exchange.connection.send(ServerResponse(status: 200, stream: stream), of: exchange, isHead: false)
        ConnectionPlay.write(PlayedClient.pieces[...], of: exchange)
    }

    /// One piece after the other, each when the one before is sent.
    private static func write(_ pieces: ArraySlice<[UInt8]>, of exchange: Exchange) {
        guard let piece = pieces.first else { return exchange.connection.finishStream(of: exchange) }
        exchange.connection.writeStream(piece, of: exchange) { isSent in
            if isSent { exchange.connection.loop.execute { write(pieces.dropFirst(), of: exchange) } }
        }
    }

    private func refuse(_ refuses: Bool) {
        handed.refuses.store(refuses, ordering: .relaxed)
        if refuses { for client in clients { client.mayBeRefused = true } }
    }

    private func endServer() {
        hasEnded = true
        for client in clients { client.mayBeCut = true }
        rules.closeAll()
    }

    func end() throws {
        try settle()
        for client in clients { try client.checkComplete() }
        // Nobody is in the middle of anything for longer than a deadline.
        for _ in 0..<8 { try pass(1_000_000_000) }
        try settle()
        for client in clients { try client.checkAfterDeadlines() }
        if hasEnded { try hold("the end of the server leaves no connection", rules.registry.count == 0) }
        for client in clients { client.leave() }
        silent = []
        try turn()
        try hold("a connection whose client has left is closed", rules.registry.count == 0)
        for _ in 0..<20 { try pass(1_000_000_000) }
        try hold("nothing is due when there is no connection", loop.isAtRest)
    }

    private func settle() throws {
        for _ in 0..<20_000 {
            try turn()
            var hasChanged = false
            for client in clients where try client.read(atMost: .max) > 0 { hasChanged = true }
            while handed.exchanges.withLock({ !$0.isEmpty }) {
                answer()
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
