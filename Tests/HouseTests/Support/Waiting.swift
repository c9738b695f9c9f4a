// Nobody sleeps here: whoever waits waits for an event, and gives up after a bound.

import Glibc
import Synchronization
import TestSupport

/// How long tests wait for what should come at once.
enum Bound {
    /// `RINGBACK_TEST_PATIENCE` multiplies every bound, for machines that are slow.
    private static let patience: Int = {
        guard let text = unsafe getenv("RINGBACK_TEST_PATIENCE") else { return 1 }
        return max(1, unsafe Int(String(cString: text)) ?? 1)
    }()

    /// Far beyond what an honest answer takes: a bound ends a broken test, it measures nothing.
    static let usual = seconds(60)

    static func seconds(_ count: Int) -> Duration { .seconds(count * patience) }
}

struct Late: Error, CustomStringConvertible {
    let what: String
    var description: String { "waited in vain: \(what)" }
}

/// A value that others can wait for: each change wakes them, and they look themselves.
final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextNumber = 0
    }
    private let state: Mutex<State>

    init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    var value: Value { state.withLock { $0.value } }

    func change(_ body: (inout Value) -> Void) {
        let waiters = state.withLock { state in
            body(&state.value)
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// The first thing that `pick` finds.
    ///
    /// - Throws: ``Late`` after the bound; its text is made then, to tell what there was instead.
    func first<Result: Sendable>(
        _ what: @autoclosure @Sendable () -> String, within bound: Duration = Bound.usual,
        _ pick: @escaping @Sendable (Value) -> Result?
    ) async throws -> Result {
        let found = await withTaskGroup(of: Result?.self) { group in
            group.addTask { await self.await(pick) }
            group.addTask {
                try? await Task.sleep(for: bound)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        guard let found else { throw Late(what: what()) }
        return found
    }

    private func await<Result: Sendable>(_ pick: @Sendable (Value) -> Result?) async -> Result? {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextNumber += 1
            state.waiters[state.nextNumber] = continuation
            return state.nextNumber
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        if let found = pick(value) { return found }
        for await _ in changes {
            if let found = pick(value) { return found }
        }
        return nil
    }
}

actor Gate {
    private var free: Int
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) {
        free = count
    }

    func enter() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiters.append($0) }
        }
    }

    func leave() {
        if waiters.isEmpty { free += 1 } else { waiters.removeFirst().resume() }
    }
}
