internal import Synchronization

/// Counts running work and lets one waiter wait until the count is zero.
final class Outstanding: Sendable {
    fileprivate struct State {
        var count = 0
        var isReleased = false
        var waiter: CheckedContinuation<Void, Never>?
    }
    private let state = Mutex(State())

    func enter() { state.withLock { $0.count += 1 } }

    func leave() {
        state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.takeWaiter() : nil
        }?.resume()
    }

    /// Returns when the count is zero or when the time has passed.
    func wait(atMost bound: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.waitUntilEmpty() }
            group.addTask { try? await Task.sleep(for: bound) }
            await group.next()
            release()
            group.cancelAll()
        }
    }

    private func waitUntilEmpty() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                let isOver = state.count == 0 || state.isReleased
                if !isOver { state.waiter = continuation }
                return isOver
            }
            if isOver { continuation.resume() }
        }
    }

    private func release() {
        state.withLock { state in
            state.isReleased = true
            return state.takeWaiter()
        }?.resume()
    }
}

extension Outstanding.State {
    fileprivate mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
        defer { waiter = nil }
        return waiter
    }
}
