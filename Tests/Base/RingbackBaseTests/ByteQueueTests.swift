import RingbackBase
import Testing

@Suite struct `a queue of bytes` {
    @Test func `gives the bytes in their order, however they are taken`() {
        var queue = ByteQueue()
        var given: [UInt8] = []
        var got: [UInt8] = []
        for round in 0..<200 {
            let piece = (0..<4_099).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ round) }
            given += piece
            queue.append(piece)
            let count = [0, 1, 5_000, 3_000, 9_000][round % 5]
            got += queue.waiting.prefix(count)
            queue.drop(min(count, queue.count))
            #expect(queue.count == given.count - got.count)
        }
        got += queue.waiting
        queue.drop(queue.count)
        #expect(got == given && queue.isEmpty && queue.held == 0)
    }

    @Test func `keeps little of what was taken, also when it is never empty`() {
        var queue = ByteQueue()
        let piece = [UInt8](repeating: 1, count: 10_000)
        queue.append(piece)
        var most = 0
        for _ in 0..<1_000 {
            queue.append(piece)
            queue.drop(piece.count)
            most = max(most, queue.held)
        }
        #expect(queue.count == piece.count)
        #expect(most <= 100_000)
    }
}
