import BrokerCore
import SharedVault
import Synchronization

/// Goes on with removals of hosts that were interrupted, here or on another host, and refreshes what removed hosts had
/// read, until nothing of that is left.
struct RemovalKeeper: Sendable {
    let sharing: Sharing
    let broker: Broker

    func run() async {
        let plan = RepeatedAttempts()
        await withDiscardingTaskGroup { group in
            for await _ in sharing.removalNews {
                guard let pause = plan.pause(after: await isDone()) else { continue }
                group.addTask {
                    try? await Task.sleep(for: pause)
                    plan.pauseEnded()
                    sharing.lookAtRemovals()
                }
            }
        }
    }

    /// One attempt. False if something is left to be done.
    private func isDone() async -> Bool {
        await broker.vaultSettled()
        let isResumed: Bool
        do throws(SharingFailure) {
            try await sharing.resumeRemovals()
            isResumed = true
        } catch {
            isResumed = false
        }
        await broker.accountsSettled(atMost: .seconds(30))
        let outcomes = await EverySession(of: broker).refresh { await sharing.isStale($0) }
        return isResumed && outcomes.allSatisfy { $0.error == nil }
    }
}

/// When the next attempt is made: the pauses grow, and there is one at a time.
private final class RepeatedAttempts: Sendable {
    private static let shortest: Duration = .seconds(30)
    private static let longest: Duration = .seconds(900)

    private let state = Mutex((next: RepeatedAttempts.shortest, isPlanned: false))

    /// The pause before the next attempt; nil if none is needed, or one is planned already.
    func pause(after isDone: Bool) -> Duration? {
        state.withLock { state in
            guard !isDone else {
                state.next = RepeatedAttempts.shortest
                return nil
            }
            guard !state.isPlanned else { return nil }
            defer { state = (min(state.next * 2, RepeatedAttempts.longest), true) }
            return state.next
        }
    }

    func pauseEnded() { state.withLock { $0.isPlanned = false } }
}
