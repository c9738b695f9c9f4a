import LocalHTTP
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A server that is shut down` {
    /// A place, a running group, and how to end it.
    private static func withGroup(
        _ server: HTTPServer, _ body: (TestServer, ServiceGroup) async throws -> Void
    ) async throws {
        try await TestServer.withDirectory { directory in
            let path = directory + "/test.sock"
            _ = try server.listen(at: .unix(path: path))
            let group = ServiceGroup(
                configuration: .init(
                    services: [.init(service: server)], logger: .init(label: "test") { _ in SwiftLogNoOpLogHandler() }))
            let running = Task { try await group.run() }
            try await body(TestServer(server: server, place: .unix(path)), group)
            await group.triggerGracefulShutdown()
            try await running.value
        }
    }

    @Test func `at once closes every connection, and lets nobody in`() async throws {
        let (started, left) = (Event(), Event())
        let server = HTTPServer { request in
            guard request.path == "/wait" else { return .text("here") }
            started.happen()
            await Event().wait()
            left.happen()
            return .text("too late")
        }
        try await TestServer.withDirectory { directory in
            let path = directory + "/test.sock"
            _ = try server.listen(at: .unix(path: path))
            let running = Task { try await server.run() }
            let place = ServerPlace.unix(path)
            let (idle, waiting) = (try RawClient(place), try RawClient(place))
            idle.get("/")
            #expect(try await onThread { try idle.answer().text } == "here")
            waiting.get("/wait")
            await started.wait()
            server.close()
            #expect(try await onThread { try idle.readToEnd().isEmpty })
            #expect(try await onThread { try waiting.readToEnd().isEmpty })
            // Its handler hears that nobody waits any more, and the server is over.
            await left.wait()
            try await running.value
        }
    }

    @Test func `answers handlers that wait, if they are cancelled`() async throws {
        var limits = ServerLimits()
        limits.cancelsAtShutdown = true
        let started = Event()
        let server = HTTPServer(limits: limits) { _ in
            started.happen()
            await Event().wait()
            return .text("shutting down", status: 503)
        }
        try await Self.withGroup(server) { test, group in
            let client = try test.client()
            client.get("/")
            await started.wait()
            await group.triggerGracefulShutdown()
            let answer = try await onThread { try client.answer() }
            #expect(answer.status == 503)
            #expect(answer.text == "shutting down")
            #expect(answer.isLast)
            #expect(try await onThread { try client.readToEnd().isEmpty })
        }
    }

    @Test func `lets handlers finish, if they do so soon`() async throws {
        let started = Event()
        // It hears of the shutdown as the server does, and takes no longer than that.
        let server = HTTPServer { _ in
            started.happen()
            try? await gracefulShutdown()
            return .text(Task.isCancelled ? "cancelled" : "finished")
        }
        try await Self.withGroup(server) { test, group in
            let client = try test.client()
            client.get("/")
            await started.wait()
            await group.triggerGracefulShutdown()
            #expect(try await onThread { try client.answer().text } == "finished")
        }
    }

    @Test func `does not wait for handlers for ever`() async throws {
        let started = Event()
        let server = HTTPServer { _ in
            started.happen()
            await Event().wait()
            return .text("cancelled", status: 503)
        }
        try await Self.withGroup(server) { test, group in
            let client = try test.client()
            client.get("/")
            await started.wait()
            await group.triggerGracefulShutdown()
            #expect(try await onThread { try client.answer().status } == 503)
        }
    }

    @Test func `refuses what comes over a standing connection, and takes no new one`() async throws {
        let (started, release) = (Event(), Event())
        let server = HTTPServer(refusal: { .text("refused", status: $0) }) { request in
            guard request.path == "/wait" else { return .text("quick") }
            started.happen()
            await release.wait()
            return .text("waited")
        }
        try await Self.withGroup(server) { test, group in
            let (standing, waiting) = (try test.client(), try test.client())
            standing.get("/")
            #expect(try await onThread { try standing.answer().status } == 200)
            waiting.get("/wait")
            await started.wait()
            await group.triggerGracefulShutdown()
            try await RawClient.waitUntilRefused(test.place)
            standing.get("/")
            let refused = try await onThread { try standing.answer() }
            #expect(refused.status == 503)
            #expect(refused.isLast)
            release.happen()
            #expect(try await onThread { try waiting.answer().text } == "waited")
        }
    }

    @Test func `ends streams and closes connections that stand`() async throws {
        var limits = ServerLimits()
        limits.cancelsAtShutdown = true
        let ended = Event()
        let server = HTTPServer(limits: limits) { request in
            guard request.path == "/stream" else { return .text("quick") }
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            continuation.onTermination = { _ in ended.happen() }
            return ServerResponse(status: 200, stream: stream)
        }
        try await Self.withGroup(server) { test, group in
            let (stream, standing, half) = (try test.client(), try test.client(), try test.client())
            stream.get("/stream")
            #expect(try await onThread { try stream.answer().status } == 200)
            standing.get("/")
            #expect(try await onThread { try standing.answer().status } == 200)
            half.send("GET / HT")
            await group.triggerGracefulShutdown()
            await ended.wait()
            for client in [stream, standing, half] { #expect(try await onThread { try client.readToEnd().isEmpty }) }
        }
    }

    @Test func `ends as well when it is cancelled`() async throws {
        let started = Event()
        let server = HTTPServer { _ in
            started.happen()
            await Event().wait()
            return .text("cancelled", status: 503)
        }
        let client = try await TestServer.run(server) { test in
            let client = try test.client()
            client.get("/")
            await started.wait()
            return client
        }
        #expect(try await onThread { try client.answer().status } == 503)
    }

    @Test func `listens no more`() async throws {
        let server = HTTPServer { _ in .text("here") }
        try await TestServer.run(server) { _ in }
        try await TestServer.withDirectory { directory in
            let path = directory + "/test.sock"
            _ = try? server.listen(at: .unix(path: path))
            try await RawClient.waitUntilRefused(.unix(path))
        }
    }
}
