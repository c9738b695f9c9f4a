import Synchronization

@testable import BrokerCore
@testable import OAuthSignIn

/// What the records were told, in order.
final class Facts: Sendable {
    private let state = Mutex<[BrokerFact]>([])
    var all: [BrokerFact] { state.withLock { $0 } }
    var record: @Sendable (BrokerFact) -> Void { { fact in self.state.withLock { $0.append(fact) } } }

    /// The names of the facts alone, in order.
    /// Without what nothing follows from.
    var names: [String] {
        all.map { String(String(describing: $0).prefix { $0 != "(" }) }.filter { $0 != "signInChosen" }
    }
}

extension SessionManager {
    var isOpenAndIdle: Bool { isOpen && isIdle }

    /// Nothing is under way.
    var isIdle: Bool { work.count == 0 && schedule.running.isEmpty }
}

extension House {
    /// A broker of a later life on the same vault, before its accounts are configured.
    func rebirth(bootID: String = "this boot", work: Work = Work(), facts: Facts = Facts()) -> Broker {
        Broker(
            vault: vault, http: network, callbackReceiver: doors.callbackReceiver, work: work,
            clock: clock.clock(bootID: bootID),
            record: facts.record)
    }

    /// Runs what is due, and waits until nothing is under way.
    func runDueTasks(of broker: Broker? = nil) async {
        let sessionManager = (broker ?? self.broker).sessionManager
        _ = await sessionManager.runDueTasks()
        _ = await eventually { await sessionManager.isIdle }
    }

    /// Lets time pass in steps, running what is due after each.
    func live(_ seconds: Int, step milliseconds: Int = 1_000, as broker: Broker? = nil) async {
        for _ in 0..<(seconds * 1_000 / milliseconds) {
            clock.advance(milliseconds: milliseconds)
            await runDueTasks(of: broker)
        }
    }

    /// Signs in to an account for each name.
    func signIn(all names: [AccountName], at other: FakeProvider? = nil) async throws {
        for name in names { try await signIn(name, at: other) }
    }

    var refreshCount: Int { provider.presented.count }
}

extension Revocations {
    /// No provider is being told of anything.
    var isIdle: Bool { entries.values.allSatisfy { !$0.isRunning } }
}
