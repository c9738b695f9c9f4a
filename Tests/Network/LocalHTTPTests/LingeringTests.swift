import Glibc
import TestSupport
import Testing

@testable import LocalHTTP

/// After an error response the client's further bytes are read and discarded, so that it gets the response.
@Suite(.timeLimit(.minutes(5))) struct `What a client sends behind a refused request` {
    private static let nonsense = "nonsense\r\n\r\n"

    @Test func `is discarded up to four mebibytes, then the connection is closed`() async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.send(Self.nonsense)
            #expect(steps.settle())
            #expect(steps.rules.registry.count == 1)
            let piece = [UInt8](repeating: 0x78, count: 65_536)
            var accepted = 0
            while steps.rules.registry.count == 1, accepted < 8 << 20 {
                client.send(piece)
                accepted += piece.count
                #expect(steps.settle())
            }
            #expect(steps.rules.registry.count == 0)
            #expect((4 << 20)...((4 << 20) + 2 * 65_536) ~= accepted)
        }
    }

    @Test func `is discarded for two seconds, then the connection is closed`() async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.send(Self.nonsense)
            #expect(steps.settle())
            for _ in 0..<3 {
                client.send("more")
                #expect(steps.pass(milliseconds: 600))
                #expect(steps.rules.registry.count == 1)
            }
            // Further bytes do not make the time longer.
            client.send("more")
            #expect(steps.pass(milliseconds: 400))
            #expect(steps.rules.registry.count == 0)
            #expect(try client.answer().status == 400)
        }
    }

    @Test func `does not cost a client its response, over TCP`() async throws {
        try await TestServer.runTCP(HTTPServer { _ in .text("here") }) { test in
            let place = test.place
            try await onThread {
                let client = try RawClient(place)
                // More than the kernel's buffers take: it is refused while the client still sends.
                client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
                client.send([UInt8](repeating: 0x78, count: 3_000_000))
                #expect(try client.answer().status == 413)
                client.endSending()
                #expect(try client.readToEnd().isEmpty)
            }
        }
    }
}
