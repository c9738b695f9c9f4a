import CLinux
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
        /// The eventfd(2) of each who waits.
        var bells: Set<Int32> = []
    }
    private let state: Mutex<State>

    init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    var value: Value { state.withLock { $0.value } }

    func change(_ body: (inout Value) -> Void) {
        state.withLock { state in
            body(&state.value)
            // Within the lock: who has given up closes the descriptor.
            for bell in state.bells { _ = eventfd_write(bell, 1) }
        }
    }

    /// The first thing that `pick` finds.
    ///
    /// - Throws: ``Late`` after the bound; its text is made then, to tell what there was instead.
    func first<Result: Sendable>(
        _ what: @autoclosure @Sendable () -> String, within bound: Duration = Bound.usual,
        _ pick: @escaping @Sendable (Value) -> Result?
    ) async throws -> Result {
        let end = ContinuousClock.now + bound
        guard let found = await onThread({ [self] in wait(for: pick, until: end) }) else { throw Late(what: what()) }
        return found
    }

    private func wait<Result>(for pick: (Value) -> Result?, until end: ContinuousClock.Instant) -> Result? {
        let bell = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        state.withLock { _ = $0.bells.insert(bell) }
        defer {
            state.withLock { _ = $0.bells.remove(bell) }
            close(bell)
        }
        while true {
            if let found = pick(value) { return found }
            let left = end - .now
            guard left > .zero else { return nil }
            _ = hasEvent(POLLIN, on: bell, within: Int32(max(1, min(left / .milliseconds(1), 60_000))))
            var rings: eventfd_t = 0
            _ = unsafe eventfd_read(bell, &rings)
        }
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
