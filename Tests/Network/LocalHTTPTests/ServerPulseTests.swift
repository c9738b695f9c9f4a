import Testing

@testable import LocalHTTP

@Suite struct `The pulse of the sockets' thread` {
    @Test func `comes back while that thread takes its turns, and not before it does`() async throws {
        await HTTPServer.turn()
        let (turned, told) = AsyncStream.makeStream(of: String.self)
        // What was given to the thread before has its turn before.
        HTTPServer.loop?.execute { told.yield("before") }
        await HTTPServer.turn()
        told.yield("turn")
        told.finish()
        var order: [String] = []
        for await word in turned { order.append(word) }
        #expect(order == ["before", "turn"])
    }
}
