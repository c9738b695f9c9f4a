import BrokerCore
import RingbackBase
import Testing

@testable import APIServer
@testable import Records

@Suite struct `The facts of the last connections` {
    private let recent = RecentFacts()
    private let policy = Policy(owner: 1_000)

    private func caller(_ pid: Int32) -> AuditCaller { AuditCaller(uid: 1_000, pid: pid, serial: 1) }

    private func keep(_ caller: AuditCaller?) -> ConnectionFacts {
        let decision = policy.decide(PolicyPeer(uid: 1_000, pid: 7), account: nil, operation: .readState)
        let facts = ConnectionFacts(decision: decision, caller: caller)
        recent.keep(facts)
        return facts
    }

    @Test func `are those of the same caller`() {
        let caller = caller(7)
        #expect(recent.find(caller, policy.generation) == nil)
        let facts = keep(caller)
        #expect(recent.find(caller, policy.generation) === facts)
        // Another program of the process, or another process with its number: the audit log makes a new caller.
        #expect(recent.find(self.caller(7), policy.generation) == nil)
    }

    @Test func `count only until the policy changes`() {
        let caller = caller(7)
        let former = keep(caller)
        policy.invalidate()
        #expect(recent.find(caller, policy.generation) == nil)
        let facts = keep(caller)
        #expect(recent.find(caller, policy.generation) === facts && facts !== former)
    }

    @Test func `of a few callers`() {
        let callers = (Int32(0)..<9).map(caller)
        for caller in callers { _ = keep(caller) }
        // The last one has taken the place of the first.
        #expect(recent.find(callers[0], policy.generation) == nil)
        for caller in callers.dropFirst() { #expect(recent.find(caller, policy.generation)?.caller === caller) }
        _ = keep(nil)
        #expect(recent.find(self.caller(-1), policy.generation) == nil)
    }
}
