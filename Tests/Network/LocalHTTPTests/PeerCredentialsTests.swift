import Glibc
import LocalHTTP
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The peer of a connection` {
    private static let reporter: @Sendable (ServerRequest) async -> ServerResponse = { request in
        .text("\(request.peer)")
    }

    @Test func `is a process, on a Unix socket`() async throws {
        try await TestServer.run(HTTPServer(handler: Self.reporter)) { test in
            let answer = try await test.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(answer.text == "\(Peer.local(uid: getuid(), pid: getpid()))")
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `is a pair of addresses, over TCP`(host: String) async throws {
        try await TestServer.runTCP(HTTPServer(handler: Self.reporter), host: host) { test in
            let address: [UInt8] = host == "::1" ? [UInt8](repeating: 0, count: 15) + [1] : [127, 0, 0, 1]
            let serverPort =
                switch test.place {
                case .ipv4(let port), .ipv6(let port): UInt16(port)
                case .unix: UInt16(0)
                }
            let client = try test.client()
            client.get("/")
            let expected = Peer.network(
                client: address, clientPort: UInt16(client.port), server: address, serverPort: serverPort)
            #expect(try await onThread { try client.answer().text } == "\(expected)")
        }
    }

    /// The addresses could be another connection's by the time its socket is looked up.
    @Test func `has no owner if the connection was reset while it was looked up`() async throws {
        let owners = Mutex<[UInt32?]>([])
        let lookups = Counter()
        let first = Mutex<RawClient?>(nil)
        let server = HTTPServer(
            ownerOf: { _ in
                if lookups.increment() == 1 { first.withLock { $0?.reset() } }
                return 4711
            },
            immediate: { request in
                owners.withLock { $0.append(request.owner) }
                return .text("")
            },
            handler: { _ in .text("") })
        try await TestServer.runTCP(server) { test in
            let client = try test.client()
            first.withLock { $0 = client }
            client.get("/")
            // The server has one thread: whatever became of the first request was before the answer to the second.
            while lookups.value == 0 { await Task.yield() }
            _ = try await test.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        }
        #expect(owners.withLock { $0 } == [nil, 4711])
    }

    @Test(arguments: [true, false]) func `gets no byte if it is not accepted`(overTCP: Bool) async throws {
        let asked = Counter()
        let server = HTTPServer(
            accepts: { _ in
                asked.increment()
                return false
            },
            immediate: { _ in
                Issue.record("a refused peer was heard")
                return .text("")
            },
            handler: { _ in
                Issue.record("a refused peer was heard")
                return .text("")
            })
        let check: @Sendable (TestServer) async throws -> Void = { test in
            try await onThread {
                for request in ["", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "junk\r\n\r\n"] {
                    let client = try test.client()
                    client.send(request)
                    #expect(try client.readToEnd().isEmpty)
                }
            }
        }
        if overTCP { try await TestServer.runTCP(server, check) } else { try await TestServer.run(server, check) }
        #expect(asked.value == 3)
    }
}
