import Glibc
import Testing

@testable import Records

@Suite struct `The ledger of hand-outs` {
    private let use = AuditUse(.issuedToken, account: "work", operation: "token")

    @Test func `wakes once for what is new, and never for a repetition`() {
        let ledger = IssuedTokenLedger()
        let caller = ledger.caller(uid: 1_000, pid: getpid(), at: 10)
        #expect(ledger.note(caller, use, at: 10).wakes)
        #expect(!ledger.note(caller, use, at: 11).wakes)
        var other = use
        other.scope = "mail"
        // Somebody is on the way already.
        #expect(!ledger.note(caller, other, at: 12).wakes)
        let rows = ledger.fresh()
        #expect(rows.map(\.use) == [use, other])
        #expect(rows.first?.tally == Tally(count: 2, first: 10, last: 11))
        for row in rows { ledger.settle(row) }
        #expect(ledger.fresh().isEmpty)
        #expect(!ledger.note(caller, use, at: 15).wakes)
        let rest = ledger.takeAll()
        #expect(rest.map(\.tally.count) == [1])
        #expect(rest.first?.tally.last == 15)
        #expect(ledger.takeAll().isEmpty)
        #expect(ledger.note(caller, use, at: 16).wakes)
    }

    @Test func `a repetition is added to the count of the first use until that is taken to be written`() throws {
        let ledger = IssuedTokenLedger()
        let caller = ledger.caller(uid: 1_000, pid: getpid(), at: 10)
        let counted = try #require(ledger.note(caller, use, at: 10).counted)
        #expect(counted.add(at: 11))
        #expect(ledger.note(caller, use, at: 12).counted === counted)
        #expect(ledger.fresh().count == 1)
        #expect(ledger.takeAll().map(\.tally) == [Tally(count: 3, first: 10, last: 12)])
        #expect(!counted.add(at: 13))
        #expect(ledger.note(caller, use, at: 13).wakes)
        #expect(ledger.takeAll().map(\.tally.count) == [1])
    }

    @Test func `uses at a restricted socket are looked at one by one`() {
        let ledger = IssuedTokenLedger()
        var use = use
        use.exposedSocket = "build"
        let caller = ledger.caller(uid: 1_000, pid: getpid(), at: 10)
        #expect(ledger.note(caller, use, at: 10).counted == nil)
        #expect(ledger.note(caller, use, at: 11).counted == nil)
    }

    @Test func `takes a number for the same process for a second, then looks again`() {
        let ledger = IssuedTokenLedger()
        let first = ledger.caller(uid: 1_000, pid: getpid(), at: 100)
        #expect(ledger.caller(uid: 1_000, pid: getpid(), at: 100) === first)
        #expect(ledger.caller(uid: 1_000, pid: getpid(), at: 101) === first)
        #expect(ledger.caller(uid: 1_000, pid: getpid(), at: 102) !== first)
        // The clock was set back.
        #expect(ledger.caller(uid: 1_000, pid: getpid(), at: 50) !== first)
        #expect(ledger.caller(uid: 0, pid: getpid(), at: 50).uid == 0)
    }

    @Test func `SK-03, ADV-11, ADV-21: an executable is verified if its process still lived when it had been read`() {
        let ledger = IssuedTokenLedger()
        let living = ProcessProof(identity: 7) { true }
        let first = ledger.caller(uid: 1_000, pid: getpid(), proof: living, at: 100)
        #expect(first.isVerified && first.executable != nil)
        #expect(ledger.caller(uid: 1_000, pid: getpid(), proof: living, at: 100) === first)
        // Another process with the same number, which has ended since: what /proc says may be a third one's.
        let ended = ledger.caller(uid: 1_000, pid: getpid(), proof: ProcessProof(identity: 8) { false }, at: 100)
        #expect(ended !== first && !ended.isVerified)
        #expect(first.identity.program != ended.identity.program)
        // Without a proof nothing is verified, though the number was verified a moment ago.
        #expect(!ledger.caller(uid: 1_000, pid: getpid(), at: 100).isVerified)
        // Where all processes have one number, each connection is looked at.
        let unnumbered = ProcessProof(identity: nil) { true }
        let second = ledger.caller(uid: 1_000, pid: getpid(), proof: unnumbered, at: 100)
        #expect(second.isVerified)
        #expect(ledger.caller(uid: 1_000, pid: getpid(), proof: unnumbered, at: 100) !== second)
    }

    @Test(arguments: [true, false])
    func `a process that has run exec is another program at its next connection`(isProved: Bool) throws {
        let child = try ExecutingChild()
        let ledger = IssuedTokenLedger()
        let proof = isProved ? ProcessProof(identity: 7) { true } : nil
        let before = ledger.caller(uid: 1_000, pid: child.pid, proof: proof, at: 100)
        #expect(before.executable == child.first && before.isVerified == isProved)
        #expect(ledger.caller(uid: 1_000, pid: child.pid, proof: proof, at: 100) === before)
        try child.execute()
        let after = ledger.caller(uid: 1_000, pid: child.pid, proof: proof, at: 100)
        #expect(after.executable == child.second && after.isVerified == isProved)
        #expect(after.identity.program.startTime == before.identity.program.startTime)
        #expect(ledger.caller(uid: 1_000, pid: child.pid, proof: proof, at: 100) === after)
    }

    @Test func `an executable that was verified is not verified once its process has ended`() {
        let ledger = IssuedTokenLedger()
        let first = ledger.caller(uid: 1_000, pid: getpid(), proof: ProcessProof(identity: 7) { true }, at: 100)
        let ended = ledger.caller(uid: 1_000, pid: getpid(), proof: ProcessProof(identity: 7) { false }, at: 100)
        #expect(first.isVerified && !ended.isVerified)
        #expect(first.identity.program != ended.identity.program)
    }

    @Test func `start time and unit of a later process with the same id are not taken over`() throws {
        let start = try #require(ProcessFacts.startTime(of: getpid()))
        let own = AuditCaller(uid: 1_000, pid: getpid(), seen: start, serial: 1)
        #expect(own.identity.program.startTime == start)
        #expect(own.identity.unit == ProcessFacts.unit(of: getpid()))
        #expect(start <= ProcessFacts.ticksSinceBoot)
        // Seen before this process started: the id was another process's.
        let other = AuditCaller(uid: 1_000, pid: getpid(), seen: start - 1, serial: 2)
        #expect(other.identity.program.startTime == nil && other.identity.program.serial == 2)
        #expect(other.identity.unit == nil)
    }

    @Test func `looks up a process once, and tells programs apart`() throws {
        let ledger = IssuedTokenLedger()
        let own = ledger.caller(uid: 1_000, pid: getpid(), at: 1)
        #expect(own.identity.program.startTime == ProcessFacts.startTime(of: getpid()))
        let again = ledger.caller(uid: 1_000, pid: getpid(), at: 3)
        #expect(own.identity.program == again.identity.program)
        // Two that are gone cannot be known to be the same.
        let gone = ledger.caller(uid: 1_000, pid: .max, at: 1)
        let later = ledger.caller(uid: 1_000, pid: .max, at: 3)
        #expect(gone.identity.program != later.identity.program)
    }

    @Test func `thousands of short processes are forgotten`() {
        let ledger = IssuedTokenLedger()
        for pid in Int32(1)...4_000 { _ = ledger.caller(uid: 1_000, pid: pid, at: Int(pid) / 10) }
        #expect(ledger.recentCount <= 2 * IssuedTokenLedger.fewRecent)
        // All of one second are kept, up to the maximum.
        for pid in Int32(1)...4_000 { _ = ledger.caller(uid: 1_000, pid: pid, at: 1_000) }
        #expect(ledger.recentCount >= 4_000 && ledger.recentCount <= IssuedTokenLedger.maxRecent)
        let known = ledger.caller(uid: 1_000, pid: 4_000, at: 1_000)
        #expect(ledger.caller(uid: 1_000, pid: 4_000, at: 1_001) === known)
    }

    @Test func `counts from many threads without losing one`() async {
        let ledger = IssuedTokenLedger()
        let use = use
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for second in 0..<1_000 {
                        _ = ledger.note(ledger.caller(uid: 1_000, pid: 7, at: second / 100), use, at: second)
                    }
                }
            }
        }
        #expect(ledger.takeAll().reduce(0) { $0 + $1.tally.count } == 8_000)
    }

    @Test func `forgets uses at its bound, and says the first again`() {
        var told = RecordedUses(maxSize: 8)
        let program = AuditCaller(uid: 1, pid: .max, serial: 1).identity.program
        func isNew(_ account: String) -> Bool {
            told.insert(AuditUse(.issuedToken, account: account, operation: "token"), of: program)
        }
        for number in 0..<8 {
            #expect(isNew("a\(number)"))
            if number < 7 { #expect(!isNew("a\(number)")) }
        }
        #expect(isNew("a0"))
    }
}
