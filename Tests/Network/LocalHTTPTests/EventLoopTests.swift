import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LocalHTTP

/// The loop in steps, with a clock of the test's own.
@Suite(.timeLimit(.minutes(5))) struct `The loop of the sockets` {
    @Test func `lets the oldest idle connection give way when there is no descriptor`() async throws {
        try await Steps.run { steps in
            let (oldest, younger) = (try RawClient(steps.place), try RawClient(steps.place))
            #expect(steps.settle())
            #expect(steps.rules.registry.count == 2)
            steps.fail(1)
            let next = try RawClient(steps.place)
            next.get("/now")
            #expect(steps.settle())
            #expect(try next.answer().text == "now")
            #expect(try oldest.readToEnd().isEmpty)
            younger.get("/now")
            #expect(steps.settle())
            #expect(try younger.answer().text == "now")
        }
    }

    @Test func `makes room for a client behind many that send nothing, without a pause`() async throws {
        try await Steps.run { steps in
            let open = try (0..<20).map { _ in try RawClient(steps.place) }
            #expect(steps.settle())
            steps.most.value.store(20, ordering: .relaxed)
            let silent = try (0..<30).map { _ in try RawClient(steps.place) }
            let genuine = try RawClient(steps.place)
            genuine.get("/now")
            #expect(steps.settle())
            #expect(try genuine.answer().text == "now")
            // As many have given way as were accepted, the oldest first.
            #expect(steps.rules.registry.count == 20)
            #expect(try open.allSatisfy { try $0.readToEnd().isEmpty })
            withExtendedLifetime(silent) {}
        }
    }

    @Test func `drops nobody when no descriptor is left and nobody waits`() async throws {
        try await Steps.run { steps in
            // Several connections at once, so that more than one is accepted at a time later.
            let clients = try (0..<30).map { _ in try RawClient(steps.place) }
            #expect(steps.settle())
            steps.most.value.store(31, ordering: .relaxed)
            let last = try RawClient(steps.place)
            #expect(steps.settle())
            #expect(steps.rules.registry.count == 31 && steps.loop.isAtRest)
            withExtendedLifetime((clients, last)) {}
        }
    }

    @Test func `rests when a listening socket was shut down by another process, and reports it`() async throws {
        try await Steps.run { steps in
            let first = try RawClient(steps.place)
            #expect(steps.settle())
            shutdown(steps.listening, Int32(SHUT_RDWR))
            #expect(steps.settle() && steps.loop.isAtRest)
            #expect(steps.lost.value.load(ordering: .relaxed) == 1)
            first.get("/now")
            #expect(steps.settle())
            #expect(try first.answer().text == "now")
        }
    }

    @Test func `notices the end of a client that has sent more than is read`() async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.send("GET /later HTTP/1.1\r\n")
            #expect(steps.settle())
            client.send("Host: a\r\n\r\n")
            client.sendUntilFull([UInt8](repeating: 0x78, count: 4_096))
            client.leave()
            #expect(steps.settle())
            #expect(steps.rules.registry.count == 0)
        }
    }

    @Test func `leaves no deadline of one client to the next`() async throws {
        try await Steps.run { steps in
            let gone = try RawClient(steps.place)
            gone.send("nonsense\r\n\r\n")
            gone.leave()
            #expect(steps.settle())
            let next = try RawClient(steps.place)
            #expect(steps.settle())
            #expect(steps.pass(milliseconds: 3_000))
            next.get("/now")
            #expect(steps.settle())
            #expect(try next.answer().text == "now")
        }
    }

    @Test func `stops accepting for a while when no descriptor can be had, and does not spin`() async throws {
        try await Steps.run { steps in
            let busy = try RawClient(steps.place)
            busy.get("/later")
            #expect(steps.settle())
            steps.fail(.max)
            let next = try RawClient(steps.place)
            next.get("/now")
            #expect(steps.settle())
            // Nothing is tried before the pause is over.
            let left = steps.failures.value.load(ordering: .relaxed)
            #expect(steps.pass(milliseconds: 100))
            #expect(steps.failures.value.load(ordering: .relaxed) == left)
            #expect(!next.hasAnswer(within: 0))
            steps.fail(0)
            #expect(steps.pass(milliseconds: 500))
            #expect(try next.answer().text == "now")
            #expect(steps.rules.registry.count == 2)
        }
    }

    @Test func `accepts again as soon as a connection closes`() async throws {
        try await Steps.run { steps in
            let busy = try RawClient(steps.place)
            busy.get("/later")
            #expect(steps.settle())
            steps.fail(.max)
            let next = try RawClient(steps.place)
            next.get("/now")
            #expect(steps.settle())
            steps.fail(0)
            busy.leave()
            #expect(steps.settle())
            #expect(try next.answer().text == "now")
        }
    }

    @Test func `serves others while one client sends without end`() async throws {
        try await Steps.run { steps in
            let (greedy, modest) = (try RawClient(steps.place), try RawClient(steps.place))
            #expect(steps.settle())
            greedy.send("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n")
            greedy.sendUntilFull([UInt8](repeating: 0x78, count: 4_096))
            modest.get("/now")
            // One turn reads a part of the first and all of the second.
            steps.loop.turn(waits: false)
            #expect(try modest.answer().text == "now")
            #expect(steps.settle())
            #expect(steps.waiting.exchanges.withLock { $0.first?.request.body.count } == 65_536)
        }
    }

    @Test func `serves others between the many requests that a client sends together`() async throws {
        try await Steps.run { steps in
            let (greedy, modest) = (try RawClient(steps.place), try RawClient(steps.place))
            #expect(steps.settle())
            greedy.send(String(repeating: "GET /now HTTP/1.1\r\nHost: a\r\n\r\n", count: 500))
            modest.get("/now")
            steps.loop.turn(waits: false)
            #expect(try modest.answer().text == "now")
            // It had its turn, and another one after everybody else's.
            let first = try greedy.receive()
            #expect(String(decoding: first, as: UTF8.self).split(separator: "HTTP/1.1 200").count == 128)
            greedy.endSending()
            let rest = try steps.readToEnd(greedy)
            #expect(String(decoding: rest, as: UTF8.self).split(separator: "HTTP/1.1 200").count == 372)
        }
    }

    @Test func `tries each listener again after its own pause`() async throws {
        try await TestServer.withDirectory { directory in
            let steps = try Steps(in: directory)
            let other = ServerPlace.unix(directory + "/other.sock")
            let failures = Steps.Counter64()
            let socket = try ListeningSocket.open(.unix(path: directory + "/other.sock"))
            try steps.loop.add(
                Listener(socket, server: steps.rules) { _ in
                    failures.value.add(1, ordering: .relaxed)
                    return -EMFILE
                })
            steps.fail(1)
            let first = try RawClient(steps.place)
            first.get("/now")
            #expect(steps.settle())
            #expect(steps.pass(milliseconds: 400))
            let second = try RawClient(other)
            #expect(steps.settle())
            #expect(steps.pass(milliseconds: 150))
            #expect(try first.answer().text == "now")
            #expect(failures.value.load(ordering: .relaxed) == 1)
            withExtendedLifetime(second) {}
        }
    }

    @Test func `gives no client the response of another that had its place before`() async throws {
        try await Steps.run { steps in
            let first = try RawClient(steps.place)
            first.get("/later")
            #expect(steps.settle())
            let exchange = try #require(steps.waiting.exchanges.withLock { $0.first })
            first.leave()
            #expect(steps.settle())
            let second = try RawClient(steps.place)
            second.get("/later")
            #expect(steps.settle())
            let other = try #require(steps.waiting.exchanges.withLock { $0.last })
            // The same object serves it.
            #expect(exchange.connection === other.connection)
            exchange.connection.send(.text("first"), of: exchange, isHead: false)
            other.connection.send(.text("second"), of: other, isHead: false)
            #expect(try second.answer().text == "second")
        }
    }

    @Test func `a closed connection is not kept until its deadline`() async throws {
        try await Steps.run { steps in
            for _ in 0..<3 {
                // Each has a deadline for the rest of its request.
                let clients = try (0..<20).map { _ in try RawClient(steps.place) }
                for client in clients { client.send("GET /now HTTP/1.1\r\n") }
                #expect(steps.settle())
                #expect(!steps.loop.isAtRest)
                withExtendedLifetime(clients) {}
            }
            #expect(steps.settle())
            #expect(steps.rules.registry.count == 0 && steps.loop.isAtRest)
        }
    }

    @Test func `a request whose bytes the kernel hands out in two parts is read as a whole`() async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.send("GET /now HTTP/1.1\r\n")
            // Reading stops at an urgent byte, which is not part of the stream. A kernel without it for Unix sockets
            // (CONFIG_AF_UNIX_OOB) refuses to send one.
            _ = unsafe Glibc.send(client.descriptor, "!", 1, Int32(MSG_OOB))
            client.send("Host: ringback\r\n\r\n")
            #expect(steps.settle())
            #expect(try client.answer().text == "now")
        }
    }

    @Test func `a request that waits does not keep its process's descriptor once that is known`() async throws {
        try await Steps.run { steps in
            let (known, unknown) = (try RawClient(steps.place), try RawClient(steps.place))
            known.get("/known")
            unknown.get("/later")
            #expect(steps.settle())
            let kept = steps.waiting.exchanges.withLock { exchanges in
                exchanges.filter { $0.request.process != nil }.map(\.request.path)
            }
            #expect(kept == (PeerProcess.isSupported ? ["/later"] : []))
        }
    }

    @Test func `asks after a deadline never early, and soon after`() throws {
        let loop = try EventLoop { 0 }
        defer { loop.forgetClosed() }
        var generator = SeededGenerator(seed: 7)
        var wheel = DeadlineWheel()
        var now: Int64 = 5_000_000_000
        var due: [ObjectIdentifier: Int64] = [:]
        let connections = (0..<200).map { _ in HTTPConnection(loop: loop) }
        for connection in connections {
            // Up to half a minute, which is more than one round.
            let instant = now + Int64.random(in: 0..<30_000_000_000, using: &generator)
            due[ObjectIdentifier(connection)] = instant
            wheel.enter(connection, due: instant, now: now)
        }
        while !wheel.isEmpty {
            let wait = Int64(wheel.timeout(now: now)) * 1_000_000
            #expect(wait >= 0 && wait < 20_000_000_000)
            now += max(wait, 1_000_000)
            for connection in wheel.takeDue(now: now) {
                let instant = try #require(due[ObjectIdentifier(connection)])
                if instant < now {
                    #expect(now - instant < 3 * DeadlineWheel.tick)
                    due[ObjectIdentifier(connection)] = nil
                } else {
                    wheel.enter(connection, due: instant, now: now)
                }
            }
        }
        #expect(due.isEmpty)
        #expect(wheel.timeout(now: now) == -1)
    }
}
