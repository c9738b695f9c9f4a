import BrokerCore
import Synchronization

/// Time that passes when the test says so.
final class TestClock: Sendable {
    private struct State {
        var now = 1_800_000_000
        var sleepers: [(until: Int, bell: Promise<Void>)] = []
    }
    private let state = Mutex(State())

    var now: Int { state.withLock { $0.now } }

    func advance(by seconds: Int) {
        let woken = state.withLock { state in
            state.now += seconds
            let woken = state.sleepers.filter { $0.until <= state.now }
            state.sleepers.removeAll { $0.until <= state.now }
            return woken
        }
        for sleeper in woken { sleeper.bell.fulfil(()) }
    }

    private func sleep(_ duration: Duration) async throws {
        let bell = Promise<Void>()
        let isOver = state.withLock { state in
            let until = state.now + Int(duration.components.seconds)
            guard until > state.now else { return true }
            state.sleepers.append((until, bell))
            return false
        }
        if isOver { return }
        guard await bell.wait() != nil else { throw CancellationError() }
    }

    var clock: BrokerClock { BrokerClock(now: { self.now }, sleep: { try await self.sleep($0) }) }
}

/// Waits for what other tasks bring about; false if it does not come within ten seconds.
func eventually(_ condition: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + .seconds(10)
    while await !condition() {
        guard ContinuousClock.now < end else { return false }
        await Task.yield()
    }
    return true
}
