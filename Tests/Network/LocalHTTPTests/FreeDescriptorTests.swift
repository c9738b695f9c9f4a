import Synchronization
import Testing

@testable import LocalHTTP

@Suite(.timeLimit(.minutes(5))) struct `Connections without a free descriptor` {
    /// Clients that have had a response and are idle, the oldest first.
    private func idle(_ count: Int, _ steps: Steps) throws -> [RawClient] {
        try (0..<count).map { _ in
            let client = try RawClient(steps.place)
            client.get("/now")
            #expect(steps.settle())
            #expect(try client.answer().text == "now")
            return client
        }
    }

    private func freeDescriptor(_ steps: Steps) -> Bool {
        while steps.loop.processes.giveUp() {}
        defer { _ = steps.settle() }
        return steps.loop.freeDescriptor()
    }

    @Test func `give way one by one, the oldest first, but none that has a request`() async throws {
        try await Steps.run { steps in
            let clients = try idle(5, steps)
            #expect(freeDescriptor(steps))
            #expect(try clients[0].readToEnd().isEmpty)
            // The second one is asked for something that takes a while.
            clients[1].get("/later")
            #expect(steps.settle())
            for client in clients[2...] {
                #expect(freeDescriptor(steps))
                #expect(try client.readToEnd().isEmpty)
            }
            #expect(!freeDescriptor(steps))
            for exchange in steps.waiting.exchanges.withLock({ $0 }) {
                exchange.connection.send(.text("late"), of: exchange, isHead: false)
            }
            #expect(try clients[1].answer().text == "late")
            // They were searched in vain just now.
            #expect(!freeDescriptor(steps))
            #expect(steps.pass(milliseconds: 10))
            #expect(freeDescriptor(steps))
            #expect(try clients[1].readToEnd().isEmpty)
        }
    }

    @Test func `do not give way for another one that had their descriptor's number`() async throws {
        try await Steps.run { steps in
            let first = try idle(3, steps)
            #expect(freeDescriptor(steps))
            // The second one leaves, and a younger one gets its number.
            first[1].leave()
            #expect(steps.settle())
            let next = try idle(2, steps)
            #expect(freeDescriptor(steps))
            #expect(try first[2].readToEnd().isEmpty)
            for client in next {
                client.get("/now")
                #expect(steps.settle())
                #expect(try client.answer().text == "now")
            }
        }
    }

    @Test(.enabled(if: PeerProcess.isSupported, "this kernel does not tell processes by descriptor"))
    func `give way for the descriptor of a client's process; without one the request is handled all the same`()
        async throws
    {
        try await Steps.run { steps in
            let clients = try idle(3, steps)
            while steps.loop.processes.giveUp() {}
            // The kernel has none for the first question, and one for the second.
            steps.unknown.value.store(1, ordering: .relaxed)
            clients[2].get("/later")
            #expect(steps.settle())
            #expect(try clients[0].readToEnd().isEmpty)
            // It has none at all. Who asks does not give way, nor does who is answered.
            while steps.loop.processes.giveUp() {}
            steps.unknown.value.store(2, ordering: .relaxed)
            clients[1].get("/later")
            #expect(steps.settle())
            #expect(steps.unknown.value.load(ordering: .relaxed) == 1)
            let exchanges = steps.waiting.exchanges.withLock { $0 }
            try #require(exchanges.count == 2)
            #expect(exchanges[0].request.process?.isAlive == true && exchanges[1].request.process == nil)
            for (exchange, client) in zip(exchanges, [clients[2], clients[1]]) {
                exchange.connection.send(.text("late"), of: exchange, isHead: false)
                #expect(try client.answer().text == "late")
            }
        }
    }
}
