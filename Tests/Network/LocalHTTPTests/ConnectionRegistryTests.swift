import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LocalHTTP

/// Who is let in, and who gives way.
@Suite(.timeLimit(.minutes(5))) struct `The crowd at a server` {
    private static func limits(_ count: Int, single: Bool = true) -> ServerLimits {
        var limits = ServerLimits()
        limits.maxConnections = count
        limits.isSingleRequest = single
        return limits
    }

    /// LB-16: a genuine callback gets through at once, not when the crowd's time is over.
    /// SK-10.
    @Test(arguments: [true, false]) func `does not keep a genuine request out by dribbling`(overTCP: Bool) async throws
    {
        var limits = Self.limits(64)
        // Nobody's time runs out here: whoever goes has given way.
        limits.requestTimeout = .seconds(600)
        let server = HTTPServer(limits: limits, immediate: { _ in .text("genuine") }, handler: { _ in .text("") })
        let check: @Sendable (TestServer) async throws -> Void = { test in
            try await onThread {
                let crowd = try (0..<1_000).map { _ in
                    let client = try test.client()
                    client.send("GET / HT")
                    return client
                }
                let client = try test.client()
                client.get("/callback")
                #expect(try client.answer().text == "genuine")
                // The first ones were told to go, the last ones are still there.
                #expect(try crowd[0].readToEnd().isEmpty)
                #expect(crowd[999].send("TP/1.1\r\nHost: a\r\n\r\n"))
                #expect(try crowd[999].answer().text == "genuine")
            }
        }
        if overTCP { try await TestServer.runTCP(server, check) } else { try await TestServer.run(server, check) }
    }

    @Test func `makes the oldest give way that has no request under way`() async throws {
        let (started, release) = (Event(), Event())
        let server = HTTPServer(limits: Self.limits(3, single: false)) { request in
            guard request.path == "/wait" else { return .text("quick") }
            started.happen()
            await release.wait()
            return .text("waited")
        }
        try await TestServer.run(server) { test in
            let busy = try test.client()
            busy.get("/wait")
            await started.wait()
            let idle = try test.client()
            idle.get("/")
            #expect(try await onThread { try idle.answer().status } == 200)
            let younger = try test.client()
            younger.get("/")
            #expect(try await onThread { try younger.answer().status } == 200)
            let newest = try test.client()
            newest.get("/")
            #expect(try await onThread { try newest.answer().status } == 200)
            #expect(try await onThread { try idle.readToEnd().isEmpty })
            younger.get("/")
            #expect(try await onThread { try younger.answer().status } == 200)
            release.happen()
            #expect(try await onThread { try busy.answer().text } == "waited")
        }
    }

    @Test func `waits outside when every place is taken by a request under way`() async throws {
        let (release, both) = (Event(), Event())
        let count = Counter()
        let server = HTTPServer(limits: Self.limits(2)) { _ in
            if count.increment() == 2 { both.happen() }
            await release.wait()
            return .text("done")
        }
        try await TestServer.run(server) { test in
            let clients = try [test.client(), test.client()]
            for client in clients { client.get("/") }
            await both.wait()
            let late = try test.client()
            #expect(try await onThread { try late.readToEnd().isEmpty })
            release.happen()
            for client in clients { #expect(try await onThread { try client.answer().text } == "done") }
            // The places are free again.
            #expect(try await test.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").text == "done")
        }
    }

    @Test func `does not hold a place by being refused`() async throws {
        let server = HTTPServer(limits: Self.limits(8)) { _ in .text("genuine") }
        try await TestServer.runTCP(server) { test in
            try await onThread {
                var refused: [RawClient] = []
                for _ in 0..<50 {
                    let client = try test.client()
                    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n")
                    #expect(try client.answer().status == 413)
                    refused.append(client)
                }
                let client = try test.client()
                client.get("/")
                #expect(try client.answer().text == "genuine")
                withExtendedLifetime(refused) {}
            }
        }
    }
}

@Suite struct `The registry of connections` {
    /// One that works on a request, or waits for one.
    private func connection(_ loop: EventLoop, isIdle: Bool) -> HTTPConnection {
        let connection = HTTPConnection(loop: loop)
        connection.phase = isIdle ? .reading : .answering(nil)
        return connection
    }

    private func idle(_ search: ConnectionRegistry.Search) -> HTTPConnection? {
        if case .found(let connection) = search { connection } else { nil }
    }

    @Test func `does not walk over thousands of busy connections for each new one`() throws {
        let loop = try EventLoop()
        var registry = ConnectionRegistry(most: 2_000)
        for _ in 0...ConnectionRegistry.longSearch { registry.append(connection(loop, isIdle: false)) }
        #expect(idle(registry.oldestIdle(now: 0)) == nil)
        let late = connection(loop, isIdle: true)
        registry.append(late)
        guard case .notNow = registry.oldestIdle(now: ConnectionRegistry.searchPause - 1)
        else { throw Unexpected("searched again at once") }
        #expect(idle(registry.oldestIdle(now: ConnectionRegistry.searchPause)) === late)
        registry.remove(late)
        for connection in registry.all { registry.remove(connection) }
    }

    @Test func `walks again at once where it finds one soon`() throws {
        let loop = try EventLoop()
        var registry = ConnectionRegistry(most: 2_000)
        let first = connection(loop, isIdle: true)
        registry.append(first)
        for _ in 0...ConnectionRegistry.longSearch { registry.append(connection(loop, isIdle: true)) }
        for _ in 0..<3 { #expect(idle(registry.oldestIdle(now: 0)) === first) }
        for connection in registry.all { registry.remove(connection) }
    }
}

/// Requests that wait take all places.
@Suite struct `The program with most of the connections` {
    private final class Requests: Sendable {
        let waiting = Mutex<[Exchange]>([])
    }

    private func client(of process: pid_t, _ rules: ConnectionRules, _ loop: EventLoop) throws -> RawClient {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | O_CLOEXEC
        try #require(unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        #expect(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        let client = RawClient(descriptor: ends[1])
        loop.freeConnection().open(Descriptor(ends[0]), .local(uid: 0, pid: process), rules)
        client.get("/")
        while loop.turn(waits: false) {}
        return client
    }

    /// A server whose places are taken by these processes, a place each. The clock stands still.
    private func play(
        _ processes: [pid_t], _ check: (ConnectionRules, EventLoop, [RawClient]) throws -> Void
    ) throws {
        let loop = try EventLoop { 1_000 }
        let requests = Requests()
        var limits = ServerLimits()
        limits.maxConnections = processes.count
        let rules = ConnectionRules(
            limits: limits, accepts: { _ in true }, ownerOf: nil, refusal: { ServerResponse(status: $0) },
            immediate: nil,
            handOver: { exchange in
                requests.waiting.withLock { $0.append(exchange) }
                return true
            })
        let clients = try processes.map { try client(of: $0, rules, loop) }
        #expect(rules.registry.count == processes.count)
        try check(rules, loop, clients)
        #expect(rules.registry.count == processes.count)
        rules.closeAll()
        loop.forgetClosed()
    }

    @Test func `gives way to others, its oldest connection first, however often it comes back`() throws {
        try play([7, 8, 7, 7, 8, 7]) { rules, loop, clients in
            var others: [RawClient] = []
            for place in [0, 2] {
                // What it opens itself is closed at once.
                #expect(try client(of: 7, rules, loop).readToEnd().isEmpty)
                others.append(try client(of: 9, rules, loop))
                #expect(try clients[place].readToEnd().isEmpty)
                #expect(rules.registry.all.last?.peer == .local(uid: 0, pid: 9))
            }
            // Two each: nobody has more than the newcomer would have then.
            #expect(try client(of: 9, rules, loop).readToEnd().isEmpty)
            withExtendedLifetime(others) {}
        }
    }

    @Test func `is one of two that have half of the places each`() throws {
        try play([7, 8, 7, 8]) { rules, loop, _ in
            let other = try client(of: 9, rules, loop)
            #expect(rules.registry.all.last?.peer == .local(uid: 0, pid: 9))
            withExtendedLifetime(other) {}
        }
    }

    /// Processes of other namespaces have the number 0.
    @Test(arguments: [[7, 8, 9, 10], [0, 0, 0, 0]] as [[pid_t]])
    func `gives way to nobody if it has one place, or cannot be told from others`(processes: [pid_t]) throws {
        try play(processes) { rules, loop, _ in
            let refused = try client(of: 11, rules, loop).readToEnd()
            #expect(refused.isEmpty)
        }
    }
}
