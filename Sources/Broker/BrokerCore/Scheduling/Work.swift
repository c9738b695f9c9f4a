internal import Synchronization

/// Work that belongs to the daemon and not to the caller who asked for it: a caller that disconnects never cancels a
/// refresh, since the provider may already have rotated the token. This is the only place that starts a `Task`.
public final class Work: Sendable {
    private struct State {
        var running: [UInt64: (task: Task<Void, Never>, isTimer: Bool)] = [:]
        var finishedEarly: Set<UInt64> = []
        var next: UInt64 = 0
    }
    private let state = Mutex(State())

    public init() {}

    @discardableResult
    public func start<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Promise<Value> {
        let promise = Promise<Value>()
        launch(isTimer: false) { promise.fulfil(await body()) }
        return promise
    }

    @discardableResult
    public func attempt<Success: Sendable>(
        _ body: @escaping @Sendable () async throws(BrokerError) -> Success
    ) -> Promise<Result<Success, BrokerError>> {
        start { await Result(awaiting: body) }
    }

    /// Starts a task that mostly waits. It is cancelled at shutdown instead of waited for.
    public func startTimer(_ body: @escaping @Sendable () async -> Void) {
        launch(isTimer: true, body)
    }

    private func launch(isTimer: Bool, _ body: @escaping @Sendable () async -> Void) {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        let task = Task {
            await body()
            self.state.withLock { state in
                // The task may end before the line below has noted it.
                if state.running.removeValue(forKey: id) == nil { state.finishedEarly.insert(id) }
            }
        }
        state.withLock { state in
            if state.finishedEarly.remove(id) == nil { state.running[id] = (task, isTimer) }
        }
    }

    var count: Int { state.withLock { $0.running.values.count { !$0.isTimer } } }

    /// Waits for what is running, so that no rotated token is lost at shutdown. Cancels what still runs after `bound`.
    public func drain(atMost bound: Duration) async {
        let running = state.withLock { Array($0.running.values) }
        for work in running where work.isTimer { work.task.cancel() }
        let pending = running.filter { !$0.isTimer }.map(\.task)
        let done = Promise<Void>()
        launch(isTimer: true) {
            for task in pending { await task.value }
            done.fulfil(())
        }
        _ = await done.wait(atMost: bound)
        for task in pending { task.cancel() }
    }
}
