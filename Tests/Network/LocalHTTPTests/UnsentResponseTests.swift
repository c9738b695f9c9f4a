import Glibc
import Synchronization
import Testing

@testable import LocalHTTP

/// The client takes its response slowly, so a part of it waits here.
@Suite(.timeLimit(.minutes(5))) struct `A response that is still being sent` {
    @Test(arguments: [false, true])
    func `is sent to its end when the server closes, or until its client leaves`(leaves: Bool) async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.get("/large")
            #expect(steps.settle())
            let sent = Steps.Counter64()
            steps.rules.closeAll { sent.value.add(1, ordering: .relaxed) }
            if leaves { client.leave() }
            #expect(steps.settle())
            if !leaves {
                #expect(sent.value.load(ordering: .relaxed) == 0)
                #expect(try steps.readToEnd(client).count > Steps.large.count)
                #expect(steps.rules.registry.count == 0)
            }
            #expect(sent.value.load(ordering: .relaxed) == 1)
        }
    }

    @Test func `gives way to another client after all idle connections`() async throws {
        try await Steps.run { steps in
            let (slow, idle) = (try RawClient(steps.place), try RawClient(steps.place))
            slow.get("/large")
            #expect(steps.settle())
            // The descriptor of a known process would give way first.
            while steps.loop.processes.giveUp() {}
            steps.fail(1)
            let next = try RawClient(steps.place)
            next.get("/now")
            #expect(steps.settle())
            #expect(try next.answer().text == "now")
            #expect(try idle.readToEnd().isEmpty)
            steps.rules.closeAll()
            #expect(try steps.readToEnd(slow).count > Steps.large.count)
        }
    }

    @Test func `has its own deadline while the client's further bytes are discarded`() async throws {
        try await Steps.run { steps in
            let client = try RawClient(steps.place)
            client.send(
                Array("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)
                    + [UInt8](repeating: 0x78, count: 100_000))
            #expect(steps.settle())
            // Longer than the bytes are discarded, and shorter than the response may take.
            #expect(steps.pass(milliseconds: 4_000))
            client.endSending()
            #expect(try steps.readToEnd(client).count > Steps.large.count)
        }
    }

    @Test func `an error of accept that may concern one client stops no listener`() async throws {
        try await Steps.run { steps in
            let idle = try RawClient(steps.place)
            #expect(steps.settle())
            for error in [EACCES, ENETDOWN, ETIMEDOUT] {
                steps.fail(1, with: error)
                let next = try RawClient(steps.place)
                next.get("/now")
                #expect(steps.settle())
                #expect(!next.hasAnswer(within: 0))
                #expect(steps.pass(milliseconds: 600))
                #expect(try next.answer().text == "now")
            }
            // Nobody had to give way.
            idle.get("/now")
            #expect(steps.settle())
            #expect(try idle.answer().text == "now")
        }
    }
}
