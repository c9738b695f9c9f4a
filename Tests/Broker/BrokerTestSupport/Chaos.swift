import TestSupport

@testable import BrokerCore

/// Everything at once, at random, while time passes: the same in every run of one seed.
struct Chaos: Sendable {
    let seed: UInt64
    let rounds: Int
    let names: [AccountName]

    /// Things happen, up to six at a time.
    ///
    /// - Parameter happen: what happens: one of 32 things, to an account.
    /// - Returns: false if the sessions did not come to rest where that was waited for.
    func run(
        _ broker: Broker, _ clock: TestClock, happen: @escaping @Sendable (Int, AccountName) async -> Void
    ) async -> Bool {
        var random = SeededGenerator(seed: seed)
        var comesToRest = true
        for _ in 0..<rounds {
            let happenings = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                (Int.random(in: 0..<32, using: &random), names[Int.random(in: 0..<names.count, using: &random)])
            }
            await withTaskGroup(of: Void.self) { group in
                for (what, name) in happenings { group.addTask { await happen(what, name) } }
            }
            clock.advance(by: Int.random(in: 0...1_500, using: &random))
            _ = await broker.sessionManager.runDueTasks()
            if Bool.random(using: &random) {
                comesToRest = await eventually { await broker.sessionManager.isIdle } && comesToRest
            }
        }
        return comesToRest
    }
}
