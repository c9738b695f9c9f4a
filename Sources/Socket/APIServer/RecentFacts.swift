internal import BrokerCore
internal import Records
internal import Synchronization

/// The facts of the last connections to the daemon's own socket. A program that connects for each request is asked for
/// again and again: its next connection takes over the facts and the counters of the last one.
///
/// Whether it is the same program is not decided here: the audit log gives the same ``AuditCaller`` only for a process that
/// is proven to be the same and to run the same executable.
final class RecentFacts: Sendable {
    private static let places = 8

    private let facts = Mutex<[ConnectionFacts?]>(Array(repeating: nil, count: places))

    /// The facts of the last connection of this caller, if the policy has not changed since.
    func find(_ caller: AuditCaller, _ generation: UInt64) -> ConnectionFacts? {
        facts.withLock { facts in
            guard let found = facts[RecentFacts.place(of: caller)], found.caller === caller,
                found.decision.generation == generation
            else { return nil }
            return found
        }
    }

    /// Keeps facts whose decision is the same for every account and operation.
    func keep(_ new: ConnectionFacts) {
        guard let caller = new.caller, new.decision.coversEverything else { return }
        facts.withLock { $0[RecentFacts.place(of: caller)] = new }
    }

    private static func place(of caller: AuditCaller) -> Int {
        Int(UInt32(bitPattern: caller.pid) % UInt32(places))
    }
}
