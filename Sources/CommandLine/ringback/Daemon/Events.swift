import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct Events: AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Print events, one per line, until Ctrl-C.",
        discussion: "Begins with an initial_session for each account. Exit status 2: the daemon ended.")

    @Argument(help: "Only this account.", completion: Completions.accounts) var account: String?
    @Flag(help: "Print one JSON object per line.") var json = false

    @Flag(help: "Print telemetry events instead, as JSON: how users sign in, and with what result.")
    var telemetry = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        do throws(RingbackError) {
            // The name is checked first, so that an impossible one gets its own error.
            if let account { try RequestTarget.checkAccount(account) }
            let events = try daemon.interruptibleCalls().openEvents(account: account, isTelemetry: telemetry)
            while let event = try events.next() { try show(event) }
        } catch {
            if error.kind == .cancelled { return }
            throw error
        }
        throw RingbackError(.noDaemon, "The daemon ended the stream of events.", recovery: .retry)
    }

    private func show(_ event: ServerSentEvents.Event) throws(RingbackError) {
        guard let data = try? JSON(parsing: event.data.utf8) else {
            throw RingbackError(.badResponse, "An event's data is not valid JSON.")
        }
        guard !telemetry else { return Output.json(data) }
        guard !json else {
            var object: JSONObject = ["event": event.name, "id": event.id]
            for member in data.object?.members ?? [] { object[member.name] = member.value }
            return Output.json(.object(object))
        }
        let words: [String?] = [
            TimeText.timeOfDay(data["at"]?.integer ?? TimeText.now()),
            data["account"]?.string ?? data["scheme"]?.string, event.name,
            data["state"]?.string.map { Account.State(rawValue: $0).text },
            User(reading: data["user"]).flatMap { $0.email ?? $0.phone } ?? data["subject"]?.string,
            data["ends_at"]?.integer.map { "ends in \(TimeText.span($0 - TimeText.now()))" },
            data["program"]?["text"]?.string, data["decision"]?.string, data["reason"]?.string,
            data["seconds"]?.integer.map { "after \(TimeText.span($0))" },
            RingbackError(reading: data["error"])?.detail,
        ]
        Output.line(words.compactMap { $0.map { Sanitizer.line($0) } }.joined(separator: "  "))
    }
}

struct Audit: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show which program got which token, and what happened to sessions and keys.",
        discussion: """
            Shows at most the newest 1000 entries; audit.jsonl in the state directory may have more. Requests of ringback \
            itself are left out, unless --all or --json is given. What such a request changed is always shown.
            """)

    @Option(help: .value("when", "Since a time ago (90s, 15m, 24h, 7d, 2w) or an instant (RFC 3339)."))
    var since: String?

    @Option(help: "Only entries about this account.", completion: Completions.accounts) var account: String?
    @Option(help: .value("number", "The maximum number of entries, 1 to 1000.")) var limit: Int?
    @Flag(help: "Also show the requests of ringback itself.") var all = false
    @Flag(help: "Print one JSON object per line.") var json = false
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        try require(
            since.map { Audit.instant($0) != nil } ?? true,
            "--since must be a time ago such as 90s, 15m, 24h or 7d, or 2027-01-15T08:00:00Z.")
        try require((1...1_000).contains(limit ?? 1), "--limit must be 1 to 1000.")
    }

    func run() throws {
        let calls = try daemon.calls()
        let answer = try calls.call(
            .getAudit,
            query: [
                ("since", since.flatMap(Audit.instant)), ("account", account), ("limit", limit.map { String($0) }),
            ])
        let entries = answer.list("entries")
        // An account that was removed may have entries.
        if entries.isEmpty, let account { _ = try calls.account(account) }
        defer {
            if answer.isTrue("truncated") {
                Output.note("There are older entries. Ask for less with --since or --account, or read audit.jsonl.")
            }
        }
        guard !json else { return entries.forEach(Output.json) }
        guard !entries.isEmpty else { return Output.note("The audit log has no such entry.") }
        let own = Programs.own
        let shown = all ? entries : entries.filter { !Audit.isInternal($0, of: own) }
        if !shown.isEmpty {
            Output.table(
                ["TIME", "EVENT", "ACCOUNT", "COUNT", "PID", "PROGRAM", "DETAILS"], shown.map(Audit.cells), below: 2)
        }
        let omitted = entries.count - shown.count
        guard omitted > 0 else { return }
        Output.note(
            "\(omitted) \(omitted == 1 ? "entry" : "entries") about requests of ringback itself left out. To see all: "
                + "ringback audit --all")
    }

    /// A span is subtracted from this machine's clock; other text is passed on for the daemon to read.
    private static func instant(_ text: String) -> String? {
        if let span = TimeSpan.seconds(of: text) { return String(max(0, TimeText.now() - span)) }
        // Numbers and other text without a date and a time are mistakes.
        return text.contains("-") && text.utf8.contains { $0 | 0x20 == UInt8(ascii: "t") } ? text : nil
    }

    /// True for a request for anything but a token that the user made with this program at the daemon's own socket.
    private static func isInternal(_ entry: JSON, of own: String?) -> Bool {
        guard let own, entry["event"] == "request", entry["executable"]?.string == own else { return false }
        return entry["uid"]?.integer == Int(getuid()) && entry["exposed_socket"] == nil
    }

    private static func cells(_ entry: JSON) -> [String] {
        [
            entry["time"]?.integer.map(TimeText.dateAndTime) ?? "", entry.text("event"),
            entry["account"]?.string ?? "-", entry["count"]?.integer.map { String($0) } ?? "",
            entry["pid"]?.integer.map { String($0) } ?? "",
            entry["executable"]?.string ?? (entry["pid"] == nil ? "" : "?"), details(entry),
        ]
    }

    private static func details(_ entry: JSON) -> String {
        let columns: Set = [
            "time", "time_text", "event", "account", "count", "pid", "executable", "first", "last", "verified",
        ]
        // The program is told unless it is the executable, and only root can change that.
        let executable = entry["executable"]?.string.map { JSON.string($0).visibleText }
        return (entry.object?.members ?? [])
            .filter { !columns.contains($0.name) && ($0.name != "program" || $0.value.string != executable) }
            .map { "\($0.name)=\($0.value.string ?? $0.value.text)" }.joined(separator: " ")
    }
}
