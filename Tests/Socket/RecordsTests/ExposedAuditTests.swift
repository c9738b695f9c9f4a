import RingbackBase
import Synchronization
import Testing

@testable import Records

@Suite(.timeLimit(.minutes(1))) struct `The audit log of restricted sockets` {
    private func use(_ socket: String?, scope: String? = nil) -> AuditUse {
        var use = AuditUse(.issuedToken, account: "work", operation: "token")
        use.exposedSocket = socket
        use.scope = scope
        return use
    }

    @Test func `a program behind a restricted socket pushes out no line about anything else`() async throws {
        let folder = try Folder()
        let log = folder.log(maxSize: 256 << 10)
        log.write("signed_in", JSONObject([.init("account", "work")]))
        await log.flush()
        // Each request by a process of its own and with a scope of its own, for an hour and a half.
        for number in 0..<68_000 {
            let now = 1_800_000_000 + number * 5_400 / 68_000
            let caller = log.caller(uid: 1_001, pid: Int32(1_000_000 + number), at: now)
            log.note(caller, use("box", scope: "s\(number)"), at: now)
            if number.isMultiple(of: 500) { await log.flush() }
        }
        log.write("signed_out", JSONObject([.init("account", "work")]))
        let entries = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(entries.contains { $0["event"] == "signed_in" } && entries.contains { $0["event"] == "signed_out" })
        #expect(folder.lines().count == 2 && folder.sockets == ["audit-box.jsonl"])
        #expect(folder.size(of: "audit-box.jsonl") <= 16 << 10 && folder.size(of: "audit-box.jsonl.1") <= 16 << 10)
        #expect(folder.mode(of: "audit-box.jsonl") == 0o600)
    }

    @Test func `many programs behind a restricted socket are counted together by uid, and none is lost`() async throws {
        let folder = try Folder()
        let log = folder.log()
        for number in 0..<5_000 {
            let uid: UInt32 = number.isMultiple(of: 2) ? 1_001 : 1_002
            let caller = log.caller(uid: uid, pid: Int32(1_000_000 + number), at: 1_800_000_000)
            log.note(caller, use("box", scope: "s\(number)"), at: 1_800_000_000 + number / 500)
        }
        let entries = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(entries.compactMap { $0["count"]?.integer }.reduce(0, +) == 5_000)
        for uid in [1_001, 1_002] {
            let own = entries.filter { $0["uid"]?.integer == uid }
            #expect(own.count { $0["pid"] != nil } == ExposedWindow.capacity)
            let together = own.filter { $0["aggregated"] == true }
            #expect((1...2).contains(together.count))
            #expect(together.allSatisfy { $0["pid"] == nil && $0["scope"] == nil && $0["exposed_socket"] == "box" })
            #expect(own.compactMap { $0["count"]?.integer }.reduce(0, +) == 2_500)
        }
    }

    @Test func `programs behind one restricted socket keep their lines whatever another socket does`() async throws {
        let folder = try Folder()
        let log = folder.log()
        for number in 0..<2_000 {
            log.note(log.caller(uid: 1_000, pid: Int32(1_000_000 + number), at: 50), use("loud"), at: 50)
        }
        log.note(log.caller(uid: 1_000, pid: 7, at: 50), use("quiet", scope: "mail"), at: 50)
        log.note(log.caller(uid: 1_000, pid: 8, at: 50), use(nil, scope: "mail"), at: 50)
        let entries = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(entries.contains { $0["exposed_socket"] == "quiet" && $0["pid"] == 7 && $0["scope"] == "mail" })
        #expect(entries.contains { $0["exposed_socket"] == nil && $0["pid"] == 8 })
        #expect(folder.sockets == ["audit-loud.jsonl", "audit-quiet.jsonl"])
    }

    @Test func `programs are told apart again after a minute`() {
        let ledger = IssuedTokenLedger()
        func note(_ pid: Int32, _ now: Int) {
            _ = ledger.note(ledger.caller(uid: 1, pid: pid, at: now), use("box"), at: now)
        }
        for pid in 1...40 { note(Int32(pid), 100) }
        #expect(ledger.takeAll().count == ExposedWindow.capacity + 1)
        note(77, 159)
        #expect(ledger.takeAll().map(\.caller.pid) == [-1])
        note(77, 160)
        #expect(ledger.takeAll().map(\.caller.pid) == [77])
    }

    @Test func `the files of the sockets that were used last are kept`() async throws {
        let folder = try Folder()
        let log = folder.log()
        for number in 0..<(AuditFiles.most + 10) {
            log.note(log.caller(uid: 1, pid: 7, at: number), use("box\(number)"), at: number)
            await log.flush()
        }
        #expect(folder.sockets.count == AuditFiles.most)
        #expect(folder.sockets.contains("audit-box\(AuditFiles.most + 9).jsonl"))
    }

    private func denial(_ tool: String) -> JSONObject {
        JSONObject([.init("exposed_socket", "box"), .init("uid", 1_000), .init("tool", .string(tool))])
    }

    private static let common = JSONObject([.init("exposed_socket", "box"), .init("uid", 1_000)])

    @Test func `an event that a program repeats is one line at once and one with a count`() async throws {
        let folder = try Folder()
        let log = folder.log()
        for _ in 0..<1_000 { log.writeCounted("denied", denial("rm"), common: Self.common, at: "box") }
        let entries = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(entries.map { $0["tool"] } == ["rm", "rm"] && entries.map { $0["count"] } == [nil, 999])
        #expect(folder.sockets == ["audit-box.jsonl"])
        // After the window the next one is written at once again.
        folder.clock.add(3_601, ordering: .relaxed)
        log.writeCounted("denied", denial("rm"), common: Self.common, at: "box")
        let later = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(later.map { $0["count"] } == [nil, 999, nil])
    }

    @Test func `many different events of a socket are counted together, and none is lost`() async throws {
        let folder = try Folder()
        let log = folder.log()
        for number in 0..<1_000 {
            log.writeCounted("denied", denial("t\(number)"), common: Self.common, at: "box")
            log.writeCounted("denied", denial("t0"), common: Self.common, at: "box")
        }
        log.writeCounted("denied", denial("t999"), common: Self.common, at: "other")
        let entries = await log.entries(since: nil, account: nil, limit: .max).entries
        #expect(entries.map { $0["count"]?.integer ?? 1 }.reduce(0, +) == 2_001)
        let together = entries.filter { $0["aggregated"] == true }
        #expect(together.map { $0["tool"] } == [nil, nil] && together.map { $0["uid"] } == [1_000, 1_000])
        #expect(entries.count <= RepeatedEvents.capacity + 5)
        // Another socket's are told apart.
        #expect(entries.contains { $0["tool"] == "t999" })
    }
}
