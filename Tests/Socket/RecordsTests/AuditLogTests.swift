import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import Records

@Suite(.timeLimit(.minutes(1))) struct `The audit log` {
    private let use = AuditUse(.issuedToken, account: "work", operation: "token")

    private func entries(_ log: AuditLog, since: Int? = nil, account: String? = nil, limit: Int = 100) async -> [JSON] {
        await log.entries(since: since, account: account, limit: limit).entries
    }

    @Test func `tells of a hand-out who, what and when`() async throws {
        let folder = try Folder()
        let log = folder.log()
        var use = use
        use.scope = "mail"
        use.audience = "https://api.example"
        let caller = log.caller(uid: 1_000, pid: getpid(), at: 1_800_000_000)
        log.note(caller, use, at: 1_800_000_000)
        let entry = try #require(await entries(log).first)
        #expect(entry["time"] == 1_800_000_000)
        #expect(entry["time_text"] == "2027-01-15T08:00:00Z")
        #expect(entry["event"] == "issued_token")
        #expect(entry["account"] == "work" && entry["operation"] == "token" && entry["scope"] == "mail")
        #expect(entry["audience"] == "https://api.example" && entry["resource"] == nil)
        #expect(entry["uid"] == 1_000 && entry["pid"]?.integer == Int(getpid()))
        #expect(entry["executable"]?.string == ProcessFacts.executable(of: getpid()))
        #expect(entry["verified"] == false)
        #expect(entry["count"] == 1 && entry["first"] == 1_800_000_000 && entry["last"] == 1_800_000_000)
        #expect(folder.mode() == 0o600)
    }

    @Test func `tells the first of its kind at once and counts the rest`() async throws {
        let folder = try Folder()
        let log = folder.log()
        let caller = log.caller(uid: 1_000, pid: getpid(), at: 10)
        log.note(caller, use, at: 10)
        // Nobody has asked for anything, and the line comes.
        while folder.lines().isEmpty { await Task.yield() }
        #expect(folder.lines().count == 1)
        for second in 11...110 { log.note(caller, use, at: second) }
        // Another connection of the same program, and another account.
        log.note(log.caller(uid: 1_000, pid: getpid(), at: 120), use, at: 120)
        log.note(caller, AuditUse(.issuedToken, account: "other", operation: "token"), at: 121)
        await log.flush()
        let all = await entries(log)
        #expect(all.filter { $0["account"] == "work" }.compactMap { $0["count"]?.integer }.reduce(0, +) == 102)
        #expect(all.filter { $0["account"] == "work" }.count == 2)
        #expect(all.last?["last"] == 121 || all.last?["last"] == 120)
        await log.flush()
        #expect(folder.lines().count == 3)
    }

    @Test func `tells events with their members`() async throws {
        let folder = try Folder()
        let log = folder.log()
        log.write("signed_out", JSONObject([.init("account", "work"), .init("subject", "al\u{202E}ice\n")]))
        let entry = try #require(await entries(log).first)
        #expect(entry.object?.names == ["time", "time_text", "event", "account", "subject"])
        #expect(entry["subject"] == "al\u{202E}ice\n")
        #expect(!folder.text().contains("\u{202E}"))
        #expect(folder.lines().count == 1)
    }

    @Test func `gives the newest that are wanted, oldest first`() async throws {
        let folder = try Folder()
        let log = folder.log(maxSize: 2_000)
        for number in 0..<40 {
            folder.clock.store(1_000 + number, ordering: .relaxed)
            log.write("signed_out", JSONObject([.init("account", number.isMultiple(of: 2) ? "even" : "odd")]))
            if number.isMultiple(of: 5) { await log.flush() }
        }
        #expect(await entries(log, limit: 3).map { $0["time"] } == [1_037, 1_038, 1_039])
        #expect(await entries(log, since: 1_038).map { $0["time"] } == [1_038, 1_039])
        #expect(await entries(log, account: "odd", limit: 2).map { $0["time"] } == [1_037, 1_039])
        #expect(await entries(log, account: "none").isEmpty)
        #expect(folder.size(of: "audit.jsonl") <= 2_000 && folder.size(of: "audit.jsonl.1") <= 2_000)
    }

    @Test func `gives entries in the order of time, and says when there are older ones`() async throws {
        let folder = try Folder()
        let log = folder.log()
        let caller = log.caller(uid: 1_000, pid: getpid(), at: 1_000)
        log.note(caller, use, at: 1_000)
        await log.flush()
        // Counted first and written last.
        log.note(caller, use, at: 1_001)
        folder.clock.store(1_005, ordering: .relaxed)
        log.write("signed_out", JSONObject())
        await log.flush()
        #expect(folder.lines().count == 3)
        let all = await log.entries(since: nil, account: nil, limit: 3)
        #expect(all.entries.map { $0["time"] } == [1_000, 1_001, 1_005] && !all.isTruncated)
        #expect(await log.entries(since: nil, account: nil, limit: 2).isTruncated)
        #expect(await !log.entries(since: 1_001, account: nil, limit: 2).isTruncated)
        #expect(await !log.entries(since: nil, account: nil, limit: .max).isTruncated)
    }

    @Test func `passes over what is no line of its own`() async throws {
        let folder = try Folder()
        try folder.put(
            "{\"time\":1,\"event\":\"a\"}\n\n{\"time\":2}\nnote\n{\"time\":\"3\",\"event\":\"b\"}\n{\"time\":4,\"event\":\"c"
        )
        let log = folder.log()
        log.write("signed_out", JSONObject())
        #expect(await entries(log).compactMap { $0["event"]?.string } == ["a", "signed_out"])
    }

    @Test func `keeps what cannot be written, says so once, and tries again`() async throws {
        let folder = try Folder()
        let log = folder.log(at: "\(folder.path)/later/audit.jsonl")
        for _ in 0..<5 {
            log.write("signed_out", JSONObject())
            await log.flush()
        }
        #expect(log.health.waiting == 5 && log.health.failures >= 5 && log.health.lost == 0)
        #expect(folder.reportCount == 1)
        // What waits is shown too.
        #expect(await entries(log).count == 5)
        try #require(unsafe mkdir("\(folder.path)/later", 0o700) == 0)
        await log.flush()
        #expect(folder.lines(of: "later/audit.jsonl").count == 5)
        #expect(log.health.waiting == 0)
        #expect(folder.reportCount == 2)
        unsafe unlink("\(folder.path)/later/audit.jsonl")
    }

    @Test func `gives lines up at its bound, and tells how many`() async throws {
        let folder = try Folder()
        let log = folder.log(at: "\(folder.path)/later/audit.jsonl")
        for _ in 0..<(AuditLog.maxWaiting + 7) { log.write("signed_out", JSONObject()) }
        await log.flush()
        #expect(log.health.lost == 7 && log.health.waiting == AuditLog.maxWaiting)
        try #require(unsafe mkdir("\(folder.path)/later", 0o700) == 0)
        await log.flush()
        let last = try #require(await entries(log, limit: 1).first)
        #expect(last["event"] == "entries_lost" && last["count"] == 7)
        #expect(folder.lines(of: "later/audit.jsonl").count == AuditLog.maxWaiting + 1)
        unsafe unlink("\(folder.path)/later/audit.jsonl")
    }

    @Test func `does not wait for the end of the interval when many programs come`() async throws {
        let folder = try Folder()
        let log = folder.log()
        let caller = log.caller(uid: 1_000, pid: getpid(), at: 10)
        for number in 0..<(AuditLog.maxRows + 10) {
            log.note(caller, AuditUse(.issuedToken, account: "a\(number)", operation: "token"), at: 10)
        }
        await log.flush()
        #expect(folder.lines().count == AuditLog.maxRows + 10)
    }
}
