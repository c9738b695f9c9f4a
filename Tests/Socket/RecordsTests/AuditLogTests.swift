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

@Suite struct `The file of the audit log` {
    private func append(_ text: String, to file: AuditFile) throws(AuditFile.Failure) {
        try file.append([Array(text.utf8)])
    }

    @Test func `is the user's alone, whoever made it`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 1_000)
        try append("{}\n", to: file)
        #expect(folder.mode() == 0o600)
        unsafe chmod(folder.file, 0o644)
        try append("{}\n", to: file)
        #expect(folder.mode() == 0o600)
        #expect(folder.text() == "{}\n{}\n")
    }

    @Test func `makes room at its bound and keeps one older file`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 100)
        for number in 0..<50 { try append("{\"number\":\(number)}\n", to: file) }
        #expect(folder.size(of: "audit.jsonl") <= 100)
        #expect(folder.size(of: "audit.jsonl.1") <= 100)
        #expect(folder.mode(of: "audit.jsonl.1") == 0o600)
        #expect(folder.lines().last == "{\"number\":49}")
        // The two are neighbours: nothing between them is missing.
        let numbers = (folder.lines(of: "audit.jsonl.1") + folder.lines()).compactMap {
            Int($0.dropFirst(10).dropLast())
        }
        #expect(numbers == Array((50 - numbers.count)..<50))
        #expect(String(decoding: file.contents(), as: UTF8.self) == folder.text(of: "audit.jsonl.1") + folder.text())
    }

    @Test func `ends a line that was cut before it goes on`() throws {
        let folder = try Folder()
        try folder.put("{\"a\":1}\n{\"b\":")
        try append("{\"c\":3}\n", to: AuditFile(path: folder.file, maxSize: 1_000))
        #expect(folder.lines() == ["{\"a\":1}", "{\"b\":", "{\"c\":3}"])
    }

    @Test func `is no link, no pipe and no directory`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 1_000)
        try folder.put("mine", in: "target")
        unsafe symlink("\(folder.path)/target", folder.file)
        #expect(throws: AuditFile.Failure(call: "open", errno: ELOOP)) { try append("{}\n", to: file) }
        #expect(folder.text(of: "target") == "mine")
        unsafe unlink(folder.file)
        unsafe mkfifo(folder.file, 0o600)
        #expect(throws: AuditFile.Failure.self) { try append("{}\n", to: file) }
        #expect(file.contents().isEmpty)
    }

    @Test func `says what a full disk left`() {
        // Not a file, so it is refused before a byte is written.
        #expect(throws: AuditFile.Failure(call: "open", errno: EPERM)) {
            try AuditFile(path: "/dev/full", maxSize: 10).append([[10]])
        }
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 0) == 0)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 3) == 1)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 4) == 2)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 6) == 3)
    }
}

@Suite struct `A line of the audit log` {
    static let texts = [
        "", "plain", "Zürich, Привет, 日本", "a\nb\r\t\u{0}\u{7F}", "\u{202E}txt.exe", "\u{2066}x\u{2069}",
        "\u{200B}\u{FEFF}",
        "\u{2028}\u{2029}\u{85}\u{9B}31m", "\u{E0041}\u{1F600}", "\"\\/", "\u{FE0F}\u{115F}\u{A0}",
    ]

    @Test(arguments: texts) func `SK-28: is one line, shows what it holds, and gives it back`(text: String) throws {
        let entry = JSONObject([.init("event", "x"), .init("executable", .string(text))])
        let bytes = AuditLine.bytes(of: entry)
        #expect(bytes.last == 10)
        #expect(bytes.count { $0 == 10 } == 1)
        #expect(AuditLine.entry(of: bytes.dropLast()) == entry)
        for scalar in String(decoding: bytes.dropLast(), as: UTF8.self).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse: Issue.record("\(scalar.value)")
            default: #expect(!scalar.properties.isDefaultIgnorableCodePoint)
            }
        }
    }

    @Test func `keeps letters as they are`() {
        let bytes = AuditLine.bytes(of: JSONObject([.init("a", "Привет 日本")]))
        #expect(String(decoding: bytes, as: UTF8.self) == "{\"a\":\"Привет 日本\"}\n")
    }

    @Test(arguments: ["", "{", "[]", "null", "{}x", "{\"a\":1,\"a\":2}", "x{}", " {}", "{\"a\":\"\u{1}\"}"])
    func `is nothing else`(text: String) {
        #expect(AuditLine.entry(of: Array(text.utf8)[...]) == nil)
    }
}

@Suite struct `The name of a host that shares a vault` {
    @Test func `is in every line from when it is known`() async throws {
        let folder = try Folder()
        let log = folder.log()
        log.write("daemon_started", JSONObject())
        log.setHost { "laptop" }
        log.write("host_removed", JSONObject([.init("host", "desktop")]))
        let entries = await log.entries(since: nil, account: nil, limit: 10).entries
        #expect(entries.map { $0["on_host"]?.string } == [nil, "laptop"])
        #expect(entries.last?["host"] == "desktop")
    }
}
