import CLinux
import Glibc
import Synchronization
import TestSupport

@testable import LocalHTTP

/// A loop without a thread, which serves one Unix socket.
final class Steps: Sendable {
    let loop: EventLoop
    let rules: ConnectionRules
    let place: ServerPlace
    /// Nanoseconds.
    let time: Counter64
    /// How many calls of `accept4` fail, and with which error: for want of a descriptor, unless stated.
    let failures: Counter64
    let failure: Counter64
    /// With so many open connections no descriptor is left; 0: there is no limit.
    let most: Counter64
    /// How many times the kernel does not tell the process of a client, for want of a descriptor.
    let unknown: Counter64
    let waiting: Box
    /// How many listening sockets were lost.
    let lost: Counter64
    /// The listening socket's descriptor, which the loop closes.
    let listening: Int32

    final class Counter64: Sendable { let value = Atomic<Int64>(0) }
    final class Box: Sendable { let exchanges = Mutex<[Exchange]>([]) }

    init(in directory: String) throws {
        let (time, failures, failure, most, waiting) = (Counter64(), Counter64(), Counter64(), Counter64(), Box())
        (self.time, self.failures, self.failure, self.most, self.waiting) = (time, failures, failure, most, waiting)
        let lost = Counter64()
        self.lost = lost
        let unknown = Counter64()
        self.unknown = unknown
        loop = try EventLoop(clock: { time.value.load(ordering: .relaxed) }) { socket in
            guard unknown.value.load(ordering: .relaxed) > 0 else { return PeerProcess(of: socket) }
            unknown.value.subtract(1, ordering: .relaxed)
            errno = EMFILE
            return nil
        }
        let rules = ConnectionRules(
            limits: ServerLimits(), accepts: { _ in true }, ownerOf: nil,
            refusal: { ServerResponse(status: $0, body: [UInt8](repeating: 0x72, count: 9_000)) },
            immediate: { request in
                if request.path == "/known" { request.memory.value = Box() }
                if request.path == "/large" { return ServerResponse(status: 200, body: Steps.large) }
                return request.path == "/now" ? .text("now") : nil
            },
            handOver: { exchange in
                waiting.exchanges.withLock { $0.append(exchange) }
                return true
            }, isLost: { lost.value.add(1, ordering: .relaxed) })
        self.rules = rules
        let path = directory + "/steps.sock"
        place = .unix(path)
        let socket = try ListeningSocket.open(.unix(path: path))
        listening = socket.descriptor.number
        let listener = Listener(socket, server: rules) { socket in
            let limit = most.value.load(ordering: .relaxed)
            if limit > 0, rules.registry.count >= limit { return -EMFILE }
            guard failures.value.load(ordering: .relaxed) > 0 else { return clinux_accept(socket) }
            failures.value.wrappingSubtract(1, ordering: .relaxed)
            return -Int32(failure.value.load(ordering: .relaxed))
        }
        try loop.add(listener)
    }

    deinit { loop.forgetClosed() }

    static func run(_ body: (Steps) async throws -> Void) async throws {
        try await TestServer.withDirectory { directory in try await body(Steps(in: directory)) }
    }

    /// Turns until there is nothing to do. False if that does not end.
    func settle() -> Bool {
        for _ in 0..<1_000 where !loop.turn(waits: false) { return true }
        return false
    }

    func pass(milliseconds: Int64) -> Bool {
        time.value.wrappingAdd(milliseconds * 1_000_000, ordering: .relaxed)
        return settle()
    }

    func fail(_ count: Int64, with error: Int32 = EMFILE) {
        failure.value.store(Int64(error), ordering: .relaxed)
        failures.value.store(count, ordering: .relaxed)
    }

    /// More than a socket takes at once: what `/large` responds.
    static let large = [UInt8](repeating: 0x6C, count: 2 << 20)

    /// Reads everything up to the end of the connection while the loop turns.
    func readToEnd(_ client: RawClient) throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            _ = settle()
            let piece = try client.receive()
            guard !piece.isEmpty else { return all }
            all += piece
        }
    }
}
