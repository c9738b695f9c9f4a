internal import Synchronization

/// Wakes tasks that wait for a change. A waiter registers first and then checks its condition, and checks it again
/// after each signal. So a change between the check and the wait is not missed.
final class Bell: Sendable {
    private struct State {
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextNumber = 0
    }
    private let state = Mutex(State())

    func ring() {
        for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.yield() }
    }

    /// Returns true once the condition holds, false if the task is cancelled before.
    func wait(until condition: @Sendable () -> Bool) async -> Bool {
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextNumber += 1
            state.waiters[state.nextNumber] = continuation
            return state.nextNumber
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        if condition() { return true }
        for await _ in rings where condition() { return true }
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

/// Holds the requests that a gate or a hang keeps back.
final class HoldingRoom: Sendable {
    private struct Guest {
        let endpoint: Endpoint
        /// A request at a gate can be released. One at a hang goes only when all are.
        let isReleasable: Bool
    }

    private struct State {
        var guests: [Int: Guest] = [:]
        var nextNumber = 0
    }

    let bell: Bell
    private let state = Mutex(State())

    init(bell: Bell) {
        self.bell = bell
    }

    /// Waits until released. Returns false if the client closed its connection before.
    func hold(_ endpoint: Endpoint, isReleasable: Bool) async -> Bool {
        let number = state.withLock { state in
            state.nextNumber += 1
            state.guests[state.nextNumber] = Guest(endpoint: endpoint, isReleasable: isReleasable)
            return state.nextNumber
        }
        bell.ring()
        let isReleased = await bell.wait { self.state.withLock { $0.guests[number] == nil } }
        state.withLock { _ = $0.guests.removeValue(forKey: number) }
        bell.ring()
        return isReleased
    }

    /// Releases the first requests that wait at the endpoint, or at any. Returns how many.
    @discardableResult
    func release(_ endpoint: Endpoint? = nil, count: Int? = nil) -> Int {
        empty(atMost: count) { $0.isReleasable && (endpoint == nil || $0.endpoint == endpoint) }
    }

    /// Releases every request.
    func empty() {
        empty(atMost: nil) { _ in true }
    }

    /// How many wait at the endpoint, or at any.
    func count(_ endpoint: Endpoint? = nil) -> Int {
        state.withLock { state in state.guests.values.count { endpoint == nil || $0.endpoint == endpoint } }
    }

    @discardableResult
    private func empty(atMost count: Int?, where isPicked: (Guest) -> Bool) -> Int {
        let leaving = state.withLock { state in
            let picked = state.guests.filter { isPicked($0.value) }.keys.sorted().prefix(count ?? .max)
            for number in picked { state.guests[number] = nil }
            return picked.count
        }
        bell.ring()
        return leaving
    }
}
