import Dispatch
import Glibc
import RingbackBase
import Synchronization
import TestSupport
import Testing

@testable import CurlTransport

@Suite(.timeLimit(.minutes(5))) struct `The curl loop` {
    let client = CurlClient(version: "0.1-test")

    private func failure(_ request: HTTPRequest) async -> HTTPClientError? { await failureOf(client, request) }

    @Test(arguments: 0...2) func `PR-05: a server that stops midway meets the time limit`(step: Int) async {
        let start = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"][step]
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write(start)
            connection.waitUntilClosed()
        }
        let request = HTTPRequest(url: server.url(), limits: HTTPLimits(timeout: .milliseconds(200)))
        #expect(await failure(request) == .timedOut(host: "127.0.0.1:\(server.port)"))
    }

    @Test func `a server that hangs does not slow another`() async throws {
        let arrived = Event()
        let hanging = ScriptedServer { connection in
            _ = connection.readRequest()
            arrived.happen()
            connection.waitUntilClosed()
        }
        let working = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.answer(body: "ok") }
        }
        let waiting = Task { await failure(HTTPRequest(url: hanging.url())) }
        #expect(await arrived.happened())
        for _ in 0..<5 { #expect(try await client.send(HTTPRequest(url: working.url())).status == 200) }
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
    }

    @Test func `a request whose time is over is not sent, on a connection that is kept either`() async throws {
        let received = Mutex(0)
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil {
                received.withLock { $0 += 1 }
                connection.answer(body: "ok")
            }
        }
        var late = HTTPRequest(url: server.url())
        // As if the machine had been suspended since.
        late.limits.sendsWithin = .seconds(-1)
        var early = late
        early.limits.sendsWithin = .seconds(60)
        let reason = "the request was not sent, since the time for it was over"
        for _ in 0..<2 {
            #expect(await failure(late) == .unreachable(host: "127.0.0.1:\(server.port)", reason: reason))
            #expect(try await client.send(early).status == 200)
        }
        #expect(received.withLock { $0 } == 2)
    }

    @Test func `a request that fails is known to be unsent only if there was no connection for it`() async throws {
        let server = ScriptedServer { connection in _ = connection.readRequest() }
        for (url, isUnsent) in [(server.url(), false), ("http://127.0.0.1:1/", true)] {
            for limit in [Duration.seconds(60), nil] {
                var request = HTTPRequest(url: url)
                request.limits.sendsWithin = limit
                request.unsentMark = UnsentMark()
                #expect(await failure(request) != nil)
                #expect(request.unsentMark?.isNoted == (isUnsent && limit != nil), "\(url)")
            }
        }
    }

    @Test func `many transfers run at once`() async throws {
        // No answer before all have arrived.
        let awaited = DispatchGroup()
        for _ in 0..<40 { awaited.enter() }
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            awaited.leave()
            _ = awaited.wait(timeout: .now() + 60)
            connection.answer(body: "ok")
        }
        let client = client
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<40 {
                group.addTask { try await client.send(HTTPRequest(url: server.url("/\(index)"))).status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 40))
    }

    @Test func `a refused connection is unreachable`() async throws {
        let port = try UnusedPort()
        let request = HTTPRequest(url: "http://127.0.0.1:\(port.number)/")
        let host = "127.0.0.1:\(port.number)"
        #expect(await failure(request) == .unreachable(host: host, reason: "the connection was refused"))
        withExtendedLifetime(port) {}
    }

    @Test func `a server that says nothing is unreachable`() async {
        let server = ScriptedServer { connection in _ = connection.readRequest() }
        let expected = "the server closed the connection without a response"
        let host = "127.0.0.1:\(server.port)"
        #expect(await failure(HTTPRequest(url: server.url())) == .unreachable(host: host, reason: expected))
    }

    @Test func `cancelling the caller closes the connection`() async {
        let arrived = Event()
        let closed = Event()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            arrived.happen()
            connection.waitUntilClosed()
            closed.happen()
        }
        let task = Task { await failure(HTTPRequest(url: server.url())) }
        #expect(await arrived.happened())
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(await closed.happened())
    }

    @Test func `a caller cancelled before the start sends nothing`() async {
        let server = ScriptedServer { $0.waitUntilClosed() }
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await failure(HTTPRequest(url: server.url()))
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(server.connectionCount == 0)
    }

    @Test func `reads share a connection, a request with a body gets its own`() async throws {
        let requests = Mutex<[String]>([])
        let server = ScriptedServer { connection in
            while let request = connection.readRequest() {
                requests.withLock { $0.append(String(request.prefix { $0 != " " })) }
                connection.answer()
            }
        }
        for _ in 0..<3 { _ = try await client.send(HTTPRequest(url: server.url())) }
        #expect(server.connectionCount == 1)
        _ = try await client.send(HTTPRequest(method: "POST", url: server.url(), body: Secret("a=1")))
        #expect(server.connectionCount == 2)
        #expect(requests.withLock { $0 } == ["GET", "GET", "GET", "POST"])
    }

    @Test func `a request with a body is never sent twice`() async throws {
        let posts = Mutex(0)
        let server = ScriptedServer { connection in
            while let request = connection.readRequest() {
                guard request.hasPrefix("GET") else {
                    // The token was rotated here, and the answer is lost.
                    posts.withLock { $0 += 1 }
                    return
                }
                connection.answer()
            }
        }
        _ = try await client.send(HTTPRequest(url: server.url()))
        guard case .unreachable = await failure(HTTPRequest(method: "POST", url: server.url(), body: Secret("r=1")))
        else { throw Unexpected("answered") }
        #expect(posts.withLock { $0 } == 1)
    }

    @Test func `shutting down fails what is pending and what comes later`() async {
        let arrived = Event()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            arrived.happen()
            connection.waitUntilClosed()
        }
        let task = Task { await failure(HTTPRequest(url: server.url())) }
        #expect(await arrived.happened())
        client.shutdown()
        #expect(await task.value == .cancelled)
        #expect(await failure(HTTPRequest(url: server.url())) == .cancelled)
        #expect(!client.isRunning)
    }

    @Test func `the thread exists only while there is something to send`() async throws {
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.answer() }
        }
        let client = CurlClient(version: "0.1-test", restsAfter: .milliseconds(20))
        #expect(!client.isRunning)
        for _ in 0..<3 {
            #expect(try await client.send(HTTPRequest(url: server.url())).status == 200)
            let end = ContinuousClock.now + .seconds(60)
            while client.isRunning, ContinuousClock.now < end { await Task.yield() }
            #expect(!client.isRunning)
        }
        #expect(server.connectionCount == 3)
    }
}
