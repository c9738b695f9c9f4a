internal import RingbackBase
internal import Synchronization

/// Counts running work and lets one waiter wait until the count is zero.
final class Outstanding: Sendable {
    private struct State {
        var count = 0
        var end: OneOutcome<Void>?
    }

    private let state = Mutex(State())

    func enter() { state.withLock { $0.count += 1 } }

    func leave() {
        state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.end : nil
        }?.give(())
    }

    /// When the count is zero, the time has passed, or the task is cancelled.
    func wait(atMost bound: Duration) async {
        let end = OneOutcome<Void>()
        let isOver = state.withLock { state in
            state.end = end
            return state.count == 0
        }
        guard !isOver else { return }
        let timer = Task {
            try? await Task.sleep(for: bound)
            end.give(())
        }
        await withTaskCancellationHandler {
            await end.outcome()
        } onCancel: {
            end.give(())
        }
        timer.cancel()
    }
}
