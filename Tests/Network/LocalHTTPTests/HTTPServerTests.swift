import Glibc
import LocalHTTP
import RingbackBase
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The local server` {
    /// Says what it was asked, by either way of answering.
    static func echo(immediately: Bool, limits: ServerLimits = ServerLimits()) -> HTTPServer {
        let reply: @Sendable (ServerRequest) -> ServerResponse = { request in
            .text(
                "\(request.method) \(request.path) \(request.query ?? "-") \(String(decoding: request.body, as: UTF8.self))"
            )
        }
        let refusal: @Sendable (Int) -> ServerResponse = { .text("refused \($0)", status: $0) }
        return HTTPServer(
            limits: limits, refusal: refusal, immediate: immediately ? reply : nil,
            handler: { request in
                await Task.yield()
                return reply(request)
            })
    }

    private static var impatient: ServerLimits {
        var limits = ServerLimits()
        limits.requestTimeout = .milliseconds(300)
        return limits
    }

    @Test(arguments: [true, false]) func `keeps a connection and answers in order`(immediately: Bool) async throws {
        try await TestServer.talk(Self.echo(immediately: immediately)) { client throws in
            for number in 0..<50 {
                client.get("/\(number)?a=%20b")
                let answer = try client.answer()
                #expect(answer.head.first == "HTTP/1.1 200 OK")
                #expect(answer.text == "GET /\(number) a=%20b ")
                #expect(!answer.isLast)
            }
        }
    }

    @Test(arguments: [true, false]) func `answers pipelined requests in order`(immediately: Bool) async throws {
        try await TestServer.talk(Self.echo(immediately: immediately)) { client throws in
            let count = 2_000
            // More than the server takes in at once, and more answers than the kernel holds.
            let sender = Thread {
                for number in 0..<count {
                    client.send("POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
                }
            }
            for number in 0..<count { #expect(try client.answer().text == "POST /\(number) - abc") }
            sender.join()
        }
    }

    @Test func `takes a request in single bytes`() async throws {
        try await TestServer.run(Self.echo(immediately: true)) { test in
            let answer = try await onThread {
                let client = try test.client()
                for byte in "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi".utf8 { client.send([byte]) }
                return try client.answer()
            }
            #expect(answer.text == "POST /x - hi")
        }
    }

    @Test func `closes when the client asks for it`() async throws {
        try await TestServer.run(Self.echo(immediately: false)) { test in
            try await onThread {
                for request in ["GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"] {
                    let client = try test.client()
                    client.send(request)
                    #expect(try client.answer().isLast)
                    #expect(try client.readToEnd().isEmpty)
                }
            }
        }
    }

    @Test func `sends no body to HEAD`() async throws {
        try await TestServer.talk(Self.echo(immediately: false)) { client throws in
            client.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.answer(toHead: true).head.contains("Content-Length: 10"))
            client.get("/y")
            #expect(try client.answer().text == "GET /y - ")
        }
    }

    @Test func `frames every answer, and lets no value forge a field`() async throws {
        let server = HTTPServer { request in
            switch request.path {
            case "/none": return ServerResponse(status: 204)
            case "/odd": return ServerResponse(status: 299)
            default: return ServerResponse(status: 404, fields: HTTPFields([("X", "a\r\nY: b"), ("Z", "c")]))
            }
        }
        try await TestServer.talk(server) { client throws in
            client.get("/")
            #expect(try client.answer().head == ["HTTP/1.1 404 Not Found", "X: ", "Z: c", "Content-Length: 0"])
            client.get("/none")
            #expect(try client.answer().head == ["HTTP/1.1 204 No Content"])
            client.get("/odd")
            #expect(try client.answer().head.first == "HTTP/1.1 299 Status")
        }
    }

    @Test(arguments: RequestVector.all, [false, true])
    func `answers every request of the vectors`(vector: RequestVector, isSingleRequest: Bool) async throws {
        var limits = ServerLimits()
        limits.isSingleRequest = isSingleRequest
        try await TestServer.talkTCP(Self.echo(immediately: true, limits: limits)) { client throws in
            client.send(vector.bytes)
            switch vector.expectation(isSingleRequest: isSingleRequest) {
            case "incomplete":
                // The rest cannot change what the first bytes were: here it only shows that nothing was answered.
                client.endSending()
                #expect(try client.readToEnd().isEmpty)
            case "continue": #expect(try client.answer().head == ["HTTP/1.1 100 Continue"])
            case "ok": #expect(try client.answer().status == 200)
            case let status:
                let answer = try client.answer()
                #expect("\(answer.status)" == status)
                #expect(answer.text == "refused \(status)")
                #expect(answer.isLast)
                #expect(try client.readToEnd().isEmpty, "nothing behind a refused request is answered")
            }
        }
    }

    @Test(arguments: [
        "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
    ])
    func `does not wait for the rest of a request for ever`(part: String) async throws {
        try await TestServer.talk(Self.echo(immediately: false, limits: Self.impatient)) { client throws in
            // A connection may stand idle between requests for as long as it likes.
            client.get("/first")
            #expect(try client.answer().status == 200)
            client.send(part)
            #expect(try client.answer().status == 408)
            #expect(try client.readToEnd().isEmpty)
        }
    }

    @Test func `bounds a head that comes in drops as a whole`() async throws {
        try await TestServer.talk(Self.echo(immediately: false, limits: Self.impatient)) { client throws in
            client.send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
            // A drop whenever nothing has come for a moment, until something has.
            while !client.hasAnswer(within: 20), client.send("x") {}
            #expect(try client.answer().status == 408)
        }
    }

    @Test func `waits for the one request of a connection no longer than for any other`() async throws {
        var limits = Self.impatient
        limits.isSingleRequest = true
        try await TestServer.runTCP(Self.echo(immediately: false, limits: limits)) { test in
            try await onThread {
                let silent = try test.client()
                #expect(try silent.answer().status == 408)
            }
        }
    }

    @Test func `reads the one request of a connection and nothing behind it`() async throws {
        var limits = ServerLimits()
        limits.isSingleRequest = true
        try await TestServer.talkTCP(Self.echo(immediately: false, limits: limits)) { client throws in
            // The second request is never looked at (LB-19).
            client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.text == "GET /1 - ")
            #expect(answer.isLast)
            #expect(try client.readToEnd().isEmpty)
        }
    }

    @Test func `tells a client that holds its body back to send it`() async throws {
        try await TestServer.talk(Self.echo(immediately: false)) { client throws in
            client.send("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(try client.answer().head == ["HTTP/1.1 100 Continue"])
            client.send("hi")
            #expect(try client.answer().text == "POST /x - hi")
            client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n")
            #expect(try client.answer().status == 413)
        }
    }

    private final class Count: Sendable {
        let value: Int

        init(value: Int) { self.value = value }
    }

    @Test func `remembers what was kept for a connection, and for that one only`() async throws {
        let server = HTTPServer(immediate: { request in
            let count = (request.memory.value as? Count)?.value ?? 0
            request.memory.value = Count(value: count + 1)
            return .text("\(count + 1)")
        }) { _ in .text("never") }
        try await TestServer.run(server) { test in
            try await onThread {
                let (one, other) = (try test.client(), try test.client())
                for expected in ["1", "2", "3"] {
                    one.get("/")
                    #expect(try one.answer().text == expected)
                }
                other.get("/")
                #expect(try other.answer().text == "1")
            }
        }
    }

    @Test func `lets the immediate handler pass a request on`() async throws {
        let server = HTTPServer(immediate: { $0.path == "/now" ? .text("now") : nil }) { _ in .text("later") }
        try await TestServer.talk(server) { client throws in
            client.send(
                "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /now HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n"
            )
            #expect(
                try [client.answer(), client.answer(), client.answer()].map(\.text) == ["later", "now", "later"])
        }
    }
}
