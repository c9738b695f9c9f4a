import RingbackBase
import Testing

@testable import CurlTransport

@Suite struct `A request to a name that another party chose` {
    private let client = CurlClient(version: "0.0.0-test")

    @Test(arguments: [
        "10.1.2.3", "172.16.0.1", "172.31.255.254", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[::ffff:10.0.0.1]",
        "127.0.0.1", "169.254.1.1", "[fe80::1]",
    ]) func `a name that somebody else chose leads into no private network`(address: String) async throws {
        var request = HTTPRequest(url: "https://\(address):9/")
        request.refusesPrivateAddresses = true
        // A socket that is not opened fails at once; a connection into nothing would take the whole time.
        request.limits.timeout = .seconds(8)
        await #expect { try await client.send(request) } throws: { error in
            if case .unreachable? = error as? HTTPClientError { true } else { false }
        }
    }

    @Test func `a request goes to the address that it has, whatever its name resolves to`() async throws {
        let server = ScriptedServer { connection in
            let head = connection.readRequest() ?? ""
            connection.answer("200 OK", fields: "", body: head.contains("Host: localhost:") ? "by name" : head)
        }
        var request = HTTPRequest(url: "http://localhost:\(server.port)/")
        let first = try await client.send(request)
        #expect(first.address == "127.0.0.1")
        // Nobody listens there, though the name still resolves to where somebody does.
        request.address = "127.0.0.9"
        await #expect(throws: HTTPClientError.self) { try await client.send(request) }
        request.address = first.address
        let second = try await client.send(request)
        #expect(second.body.revealed() == "by name" && second.address == "127.0.0.1")
        // The address is checked as the one that a name resolves to is.
        request.refusesInsideAddresses = true
        await #expect(throws: HTTPClientError.self) { try await client.send(request) }
        #expect(server.connectionCount == 2)
        // A name that is nowhere needs no resolver.
        request = HTTPRequest(url: "https://nowhere.invalid:\(server.port)/")
        request.address = "127.0.0.1"
        await #expect(throws: HTTPClientError.self) { try await client.send(request) }
        #expect(server.connectionCount == 3)
    }

    @Test(arguments: [true, false])
    func `a kept connection into this machine is not used`(refusesPrivate: Bool) async throws {
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.answer(body: "here") }
        }
        var request = HTTPRequest(url: "http://localhost:\(server.port)/")
        for _ in 0..<2 { _ = try await client.send(request) }
        // The client keeps its connections.
        #expect(server.connectionCount == 1)
        request.refusesInsideAddresses = true
        request.refusesPrivateAddresses = refusesPrivate
        await #expect(throws: HTTPClientError.self) { try await client.send(request) }
        #expect(server.connectionCount == 1)
    }

    @Test func `a response says that its server is on this machine`() async throws {
        let server = ScriptedServer.answering("200 OK", fields: "", body: "here")
        #expect(try await client.send(HTTPRequest(url: server.url("/"))).peer == .inside)
    }
}

@Suite struct `A stream to a name that must not lead to this machine` {
    private func outcome(_ request: HTTPRequest, _ streams: CurlStreams) throws -> StreamTransfer {
        let transfer = try #require(streams.start(request, length: nil))
        var watched: [CurlStreams.Watched] = []
        let end = ContinuousClock.now + .seconds(20)
        while transfer.outcome == nil, .now < end {
            streams.advance()
            if transfer.outcome == nil { streams.wait(&watched, atMost: 100) }
        }
        return transfer
    }

    @Test(arguments: [true, false]) func `connects to none of its addresses, and uses no kept connection`(
        hasKept: Bool
    ) throws {
        let server = ScriptedServer { connection in
            while connection.readRequest() != nil { connection.answer(body: "here") }
        }
        let streams = try #require(CurlStreams(version: "0.0.0-test"))
        var request = HTTPRequest(url: "http://localhost:\(server.port)/", authorization: Secret("Bearer secret"))
        if hasKept {
            for _ in 0..<2 { #expect(try outcome(request, streams).response?.status == 200) }
        }
        request.refusesInsideAddresses = true
        let refused = try outcome(request, streams)
        guard case .notSent(.unreachable(_, let reason, _))? = refused.outcome
        else { throw Unexpected(refused.outcome) }
        #expect(reason.contains("leads to this machine") && refused.response == nil)
        #expect(server.connectionCount == (hasKept ? 1 : 0))
    }
}
