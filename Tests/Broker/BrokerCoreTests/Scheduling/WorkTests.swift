import RingbackBase
import Synchronization
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The daemon's own work` {
    @Test func `goes on when its caller is cancelled`() async {
        let work = Work()
        let gate = Promise<Void>()
        let started = Promise<Promise<Int>>()
        let caller = Task {
            let promise = work.start { () -> Int in
                _ = await gate.wait()
                return Task.isCancelled ? 0 : 1
            }
            started.fulfil(promise)
            return await promise.wait()
        }
        let promise = await started.wait()
        caller.cancel()
        #expect(await caller.value == nil)
        gate.fulfil(())
        #expect(await promise?.wait() == 1)
    }

    @Test func `is waited for at shutdown, while timers are cancelled`() async {
        let work = Work()
        let gate = Promise<Void>()
        let isDone = Promise<Void>()
        let isTimerOver = Promise<Bool>()
        work.start {
            _ = await gate.wait()
            isDone.fulfil(())
        }
        work.startTimer { isTimerOver.fulfil(await Promise<Void>().wait() == nil) }
        let draining = Task { await work.drain(atMost: .seconds(30)) }
        #expect(await isTimerOver.wait(atMost: .seconds(60)) == true)
        #expect(isDone.value == nil)
        gate.fulfil(())
        await draining.value
        #expect(isDone.value != nil)
    }

    @Test func `is cancelled when the shutdown's bound has passed`() async {
        let work = Work()
        let gate = Promise<Void>()
        let promise = work.start { await gate.wait() == nil }
        await work.drain(atMost: .milliseconds(20))
        #expect(await promise.wait(atMost: .seconds(60)) == true)
    }

    @Test func `that ends at once is not kept`() async {
        let work = Work()
        let promises = (0..<1_000).map { number in work.start { number } }
        for (number, promise) in promises.enumerated() { #expect(await promise.wait() == number) }
        await work.drain(atMost: .seconds(10))
    }

    @Test func `of a refresh is finished before the daemon ends`() async throws {
        let house = try await House.expired()
        let reading = await house.heldRefresh()
        reading.cancel()
        let draining = Task { await house.broker.drain(atMost: .seconds(30)) }
        house.provider.release(.token)
        await draining.value
        #expect(await house.vault.log.last == "store refresh-3")
    }

    @Test func `that is cancelled at shutdown keeps its turn: no refresh token is presented twice`() async throws {
        let house = try await House.expired()
        house.provider.hold(.keys)
        house.clock.advance(by: 3_600)
        // The first has its answer, and looks for the keys to check it with; the second waits for its turn.
        let first = Task { await house.failure() }
        #expect(await house.provider.arrived(.token, 2))
        #expect(await house.provider.arrived(.keys, 2))
        let query = SessionQuery { $0.key = TokenKey(scopes: ["email"]) }
        // The refresh, and the keys that it looks for.
        #expect(await eventually { house.work.count == 2 })
        let second = Task { await house.failure(query) }
        #expect(await eventually { house.work.count == 3 })
        await house.broker.drain(atMost: .milliseconds(1))
        house.provider.release(.keys)
        _ = await (first.value, second.value)
        #expect(await eventually { house.work.count == 0 })
        #expect(Set(house.provider.presented).count == house.refreshCount)
        #expect(await house.vault.sessions.count == 1)
    }

    @Test func `that could not be saved is saved before the daemon ends`() async throws {
        let house = try await House.unsaved()
        await house.vault.fail(with: nil)
        await house.broker.drain(atMost: .seconds(5))
        #expect(await house.vault.sessions.first?.refreshToken == Secret("refresh-3"))
    }
}

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
