import LocalHTTP
import TestSupport
import Testing

/// Handlers that wait, streams, and clients that go away or do not read.
@Suite(.timeLimit(.minutes(5))) struct `An exchange` {
    @Test func `is cancelled when the client goes away`() async throws {
        let (started, cancelled) = (Event(), Event())
        let server = HTTPServer { _ in
            started.happen()
            await Event().wait()
            if Task.isCancelled { cancelled.happen() }
            return .text("too late")
        }
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            await started.wait()
            client.leave()
            await cancelled.wait()
        }
    }

    @Test func `is cancelled even if the client has sent ahead more than is read`() async throws {
        let (started, cancelled) = (Event(), Event())
        let server = HTTPServer { _ in
            started.happen()
            await Event().wait()
            cancelled.happen()
            return .text("too late")
        }
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            await started.wait()
            await onThread {
                client.sendUntilFull([UInt8](repeating: 0x78, count: 4_096))
                client.leave()
            }
            await cancelled.wait()
        }
    }

    @Test func `does not hold up the other connections`() async throws {
        let (started, release) = (Event(), Event())
        let server = HTTPServer { request in
            guard request.path == "/slow" else { return .text("quick") }
            started.happen()
            await release.wait()
            return .text("slow")
        }
        try await TestServer.run(server) { test in
            let slow = try test.client()
            slow.get("/slow")
            // Behind it on the same connection: its turn comes after.
            slow.get("/quick")
            await started.wait()
            #expect(try await test.ask("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n").text == "quick")
            release.happen()
            let answers = try await onThread { try [slow.answer(), slow.answer()] }
            #expect(answers.map(\.text) == ["slow", "quick"])
        }
    }

    @Test func `sends a stream as it comes and ends with it`() async throws {
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        let server = HTTPServer { _ in ServerResponse(status: 200, stream: stream) }
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            let head = try await onThread { try client.answer() }
            #expect(head.isLast)
            #expect(!head.head.contains { $0.hasPrefix("Content-Length") })
            for text in ["one", "two"] {
                continuation.yield(Array(text.utf8))
                #expect(try await onThread { try client.receive() } == Array(text.utf8))
            }
            continuation.yield(Array("last".utf8))
            continuation.finish()
            #expect(try await onThread { try client.readToEnd() } == Array("last".utf8))
        }
    }

    @Test func `ends a stream when the client leaves`() async throws {
        let ended = Event()
        let server = HTTPServer { _ in
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            continuation.onTermination = { _ in ended.happen() }
            continuation.yield([0x61])
            return ServerResponse(status: 200, stream: stream)
        }
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            #expect(try await onThread { try client.answer().status } == 200)
            client.leave()
            await ended.wait()
        }
    }

    @Test func `sends nothing of a stream to HEAD`() async throws {
        let server = HTTPServer { _ in
            ServerResponse(status: 200, stream: AsyncStream { $0.yield([0x61]) })
        }
        try await TestServer.run(server) { test in
            let bytes = try await onThread {
                let client = try test.client()
                client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
                return try client.readToEnd()
            }
            #expect(String(decoding: bytes, as: UTF8.self) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        }
    }

    @Test func `SK-10: is cut when the client does not read a stream`() async throws {
        var limits = ServerLimits()
        limits.writeTimeout = .milliseconds(300)
        let ended = Event()
        let server = HTTPServer(limits: limits) { _ in
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            continuation.onTermination = { _ in ended.happen() }
            for _ in 0..<100 { continuation.yield([UInt8](repeating: 0x61, count: 100_000)) }
            return ServerResponse(status: 200, stream: stream)
        }
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            await ended.wait()
            // What the kernel had is all there is.
            #expect(try await onThread { try client.readToEnd() }.count < 5_000_000)
        }
    }

    @Test(arguments: [true, false]) func `SK-10: is cut when the client does not read an answer`(immediately: Bool)
        async throws
    {
        var limits = ServerLimits()
        limits.writeTimeout = .milliseconds(300)
        let large = ServerResponse(status: 200, body: [UInt8](repeating: 0x61, count: 8_000_000))
        let server = HTTPServer(limits: limits, immediate: { _ in immediately ? large : nil }, handler: { _ in large })
        try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            let count = try await onThread {
                try client.waitForEnd()
                return try client.readToEnd().count
            }
            #expect(count > 0 && count < 8_000_000)
        }
    }

    /// A client that asks without end and never reads must not fill our memory with answers.
    @Test func `waits until the answers before it are taken`() async throws {
        let asked = Counter()
        let server = HTTPServer(immediate: { _ in
            asked.increment()
            return ServerResponse(status: 200, body: [UInt8](repeating: 0x61, count: 10_000))
        }) { _ in .text("never") }
        try await TestServer.talk(server) { client throws in
            let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            // Whole requests: a full socket takes none of one, or all of it.
            client.sendUntilFull(Array(repeatElement(request, count: 50).joined()))
            // The kernel holds a few hundred KB of answers, ours and no more than a burst beside them.
            #expect(asked.value < 1_000)
            for _ in 0..<2_000 { #expect(try client.answer().body.count == 10_000) }
        }
    }

    @Test func `answers a client that reads slowly, if it reads`() async throws {
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let server = HTTPServer(immediate: { _ in ServerResponse(status: 200, body: body) }) { _ in .text("never") }
        try await TestServer.talk(server) { client throws in
            client.get("/")
            client.get("/", "Connection: close\r\n")
            #expect(try client.answer().body == body)
            let last = try client.answer()
            #expect(last.body == body)
            #expect(last.isLast)
            #expect(try client.readToEnd().isEmpty)
        }
    }
}
