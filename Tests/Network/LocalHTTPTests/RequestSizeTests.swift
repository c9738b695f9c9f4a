import Glibc
import LocalHTTP
import RingbackBase
import TestSupport
import Testing

extension `The local server` {
    /// The client sends all of it before it reads: the answer must survive that.
    @Test(arguments: [false, true]) func `refuses a body over the cap so that it can be read`(overTCP: Bool)
        async throws
    {
        let server = Self.echo(immediately: false)
        let check: @Sendable (TestServer) async throws -> Void = { test in
            try await onThread {
                let client = try test.client()
                client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
                for _ in 0..<100 where !client.send([UInt8](repeating: 0x78, count: 10_000)) { break }
                let answer = try client.answer()
                #expect(answer.status == 413)
                #expect(answer.text == "refused 413")
                #expect(try client.readToEnd().isEmpty)
            }
        }
        if overTCP { try await TestServer.runTCP(server, check) } else { try await TestServer.run(server, check) }
    }

    /// LB-17: a line of 1 MiB, 100,000 fields.
    @Test(arguments: [
        String(repeating: "x", count: 1 << 20),
        " HTTP/1.1\r\nHost: a\r\n" + String(repeating: "a: b\r\n", count: 100_000),
    ])
    func `refuses a head over the cap so that it can be read`(rest: String) async throws {
        try await TestServer.talkTCP(Self.echo(immediately: false)) { client throws in
            client.send("GET /" + rest)
            #expect(try client.answer().status == 431)
        }
    }

    @Test func `does not listen to a refused client without end`() async throws {
        try await TestServer.talk(Self.echo(immediately: false)) { client throws in
            client.send("no HTTP\r\n\r\n")
            #expect(try client.answer().status == 400)
            let piece = [UInt8](repeating: 0x78, count: 65_536)
            var sent = 0
            while sent < 64 << 20, client.send(piece) { sent += piece.count }
            #expect(sent < 16 << 20)
        }
    }
}
