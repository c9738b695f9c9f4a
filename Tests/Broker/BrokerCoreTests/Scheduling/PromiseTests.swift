import Synchronization
import Testing

@testable import BrokerCore

@Suite(.timeLimit(.minutes(1))) struct `A promise` {
    @Test func `is delivered once, to all who wait and all who come later`() async {
        let promise = Promise<Int>()
        let values = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<100 { group.addTask { await promise.wait() } }
            for _ in 0..<100 { group.addTask { await promise.wait(atMost: .seconds(30)) } }
            promise.fulfil(1)
            promise.fulfil(2)
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: 1, count: 200))
        #expect(promise.value == 1)
        #expect(await promise.wait() == 1)
        #expect(await promise.wait(atMost: .zero) == 1)
    }

    @Test func `lets a cancelled caller go, even one that was cancelled before it waited`() async {
        let promise = Promise<Int>()
        let gate = Promise<Void>()
        let early = Task {
            _ = await gate.wait()
            return await promise.wait()
        }
        early.cancel()
        #expect(await early.value == nil)
        let waiting = Task { await promise.wait() }
        waiting.cancel()
        #expect(await waiting.value == nil)
        let bounded = Task { await promise.wait(atMost: .seconds(30)) }
        bounded.cancel()
        #expect(await bounded.value == nil)
        promise.fulfil(3)
        #expect(await promise.wait() == 3)
    }

    @Test func `ends a wait at its bound`() async {
        let promise = Promise<Int>()
        #expect(await promise.wait(atMost: .milliseconds(5)) == nil)
        #expect(await promise.wait(atMost: .zero) == nil)
        #expect(await promise.wait(atMost: .seconds(-1)) == nil)
    }

    @Test func `survives cancellation and delivery at the same instant`() async {
        for _ in 0..<500 {
            let promise = Promise<Int>()
            let waiting = Task { await promise.wait() }
            let delivering = Task { promise.fulfil(1) }
            waiting.cancel()
            let value = await waiting.value
            #expect(value == nil || value == 1)
            await delivering.value
            #expect(await promise.wait() == 1)
        }
    }
}
