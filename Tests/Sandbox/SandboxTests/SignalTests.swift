import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(1))) struct `The signal` {
    @Test func `wakes a waiter whose condition came true before it waited`() async {
        #expect(await Signal().wait { true })
    }

    @Test func `wakes every waiter that the change concerns`() async {
        let signal = Signal()
        let clock = SandboxClock()
        let start = clock.now
        await withTaskGroup(of: Bool.self) { group in
            for threshold in 1...50 {
                group.addTask { await signal.wait { clock.now >= start + threshold } }
            }
            for _ in 1...50 {
                clock.advance(by: 1)
                signal.send()
            }
            for await isThere in group { #expect(isThere) }
        }
    }

    @Test func `lets a cancelled waiter go`() async {
        let signal = Signal()
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await signal.wait { false } }
            group.cancelAll()
            #expect(await group.next() == false)
        }
        #expect(await !signal.wait(atMost: .milliseconds(1)) { false })
    }
}
