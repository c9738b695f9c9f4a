internal import Synchronization

/// Wakes tasks that wait for a change. A waiter registers first and then checks its condition, and checks it again
/// after each signal. So a change between the check and the wait is not missed.
final class Signal: Sendable {
    private struct State {
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextNumber = 0
    }
    private let state = Mutex(State())

    func send() {
        for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.yield() }
    }

    /// Returns true once the condition holds, false if the task is cancelled before.
    func wait(until condition: @Sendable () -> Bool) async -> Bool {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextNumber += 1
            state.waiters[state.nextNumber] = continuation
            return state.nextNumber
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        if condition() { return true }
        for await _ in signals where condition() { return true }
        return false
    }

    /// Returns true once the condition holds, false when the time is over.
    func wait(atMost bound: Duration, until condition: @escaping @Sendable () -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.wait(until: condition) }
            group.addTask {
                try? await Task.sleep(for: bound)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
