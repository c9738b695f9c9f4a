import RingbackBase
import TestSupport
import Testing

/// Consent through the executables. Programs that ask are `curl` in sessions of their own, and in control groups of their own
/// where the tests are in one that counts; the tests themselves are another program elsewhere.
@Suite struct `Consent` {
    private static func configuration(_ consent: String) -> String {
        Stage.twoAccounts.replacing("[accounts.home]", with: "\(consent)\n\n[accounts.home]")
    }

    private func play(_ consent: String = "consent = \"ask\"", _ test: (Stage) async throws -> Void) async throws {
        try await Stage.play(Self.configuration(consent)) { stage in
            try await stage.signIn()
            try await test(stage)
        }
    }

    private func curl(_ stage: Stage, _ arguments: String...) -> [String] {
        ["/usr/bin/curl", "-sS", "--max-time", "90", "--unix-socket", stage.socket] + arguments
    }

    /// A program that requests a token.
    private func asker(_ stage: Stage, _ query: String = "?timeout=60") throws -> ApartProgram {
        try stage.startApart(curl(stage, "http://ringback/v1/accounts/work/session\(query)"))
    }

    private func questions(_ stage: Stage, _ count: Int = 1) async throws -> [JSON] {
        try await stage.eventually("\(count) open questions") {
            try await stage.api("GET", "/v1/consents")["consents"]?.array?.count == count
        }
        return try await stage.api("GET", "/v1/consents")["consents"]?.array ?? []
    }

    private func answer(_ stage: Stage, _ question: JSON, _ body: JSON, status: Int = 200) async throws -> Answer {
        try await stage.api("POST", "/v1/consents/\(question["id"]?.string ?? "")", body, status: status)
    }

    private func audit(_ stage: Stage, _ event: String) async throws -> [JSON] {
        let audit = try await stage.ringback("audit", "--json", status: 0)
        return try audit.lines.map { try JSON(parsing: $0.utf8) }.filter { $0["event"]?.string == event }
    }

    @Test(ControlGroup.canStartApart)
    func `is asked for once for two requests, and an answer for the session holds in it alone`() async throws {
        try await play { stage in
            let events = try await stage.listen(to: "/v1/events?account=work")
            let first = try asker(stage)
            let question = try #require(try await questions(stage).first)
            #expect(question["account"] == "work" && question["operation"] == "token")
            #expect(question["program"]?["executable"] == "/usr/bin/curl", "\(question)")
            let told = try await events.next("consent_requested")
            #expect(told["id"] == question["id"] && told["program"] == question["program"])
            _ = try await answer(stage, question, ["decision": "allow", "remember": "session"])
            #expect(try await first.end().out.contains("access_token"))
            #expect(try await events.next("consent_decided")["decision"] == "allow")
            // Another session is asked about anew.
            let second = try asker(stage)
            let next = try #require(try await questions(stage).first)
            #expect(next["id"] != question["id"])
            _ = try await answer(stage, next, ["decision": "deny"])
            #expect(try await second.end().out.contains("policy_denied"))
            let decided = try await audit(stage, "consent_decided")
            #expect(decided.map { $0["decision"]?.string } == ["allow", "deny"])
            #expect(decided.allSatisfy { $0["answered_by"]?.string?.hasPrefix("\"/") == true && $0["pid"] != nil })
            #expect(decided.allSatisfy { $0["program"] == question["program"]?["text"] }, "\(decided)")
        }
    }

    @Test(ControlGroup.canStartApart) func `is given on a terminal by ringback consent`() async throws {
        try await play { stage in
            let program = try asker(stage)
            _ = try await questions(stage)
            let terminal = try stage.terminal("consent")
            try await terminal.shows("\"/usr/bin/curl\"")
            try await terminal.shows("Your answer")
            terminal.type("1")
            try await terminal.shows("Allowed: work")
            #expect(try await terminal.end().status == 0)
            #expect(try await program.end().out.contains("access_token"))

            let next = try asker(stage)
            let id = try #require(try await questions(stage).first?["id"]?.string)
            let allow = try await stage.ringback("consent", "allow", id, status: 4)
            #expect(allow.err.contains("terminal"))
            let listed = try await stage.ringback("consent", status: 0, prints: id)
            #expect(listed.out.contains("wants to use the account"))
            let always = try stage.terminal("consent", "allow", id, "--remember", "always")
            #expect(try await always.end().status == 0)
            #expect(try await next.end().out.contains("access_token"))
            // The decision survives a restart, and can be forgotten.
            #expect(try await stage.stopDaemon().status == 0)
            try await stage.startDaemon()
            #expect(try await asker(stage).end().out.contains("access_token"))
            let kept = try await stage.ringback("consent", "list", "--json", status: 0)
            let remembered = try kept.json["remembered"]?.array?.first
            #expect(remembered?["remember"] == "always" && remembered?["executable"] == "/usr/bin/curl")
            let keptID = remembered?["id"]?.string ?? ""
            let forget = try await stage.ringback("consent", "forget", keptID, status: 4)
            #expect(forget.err.contains("terminal"))
            #expect(try await stage.terminal("consent", "forget", keptID).end().status == 0)
            #expect(try await asker(stage, "?consent=never").end().out.contains("consent_required"))
        }
    }

    @Test(ControlGroup.canStartApart)
    func `is refused from the program that asks, its session and its children, and no error says how to give it`()
        async throws
    {
        try await play { stage in
            let asking = try stage.connect()
            await asking.send(Stage.request("GET", "/v1/accounts/work/session?timeout=60"))
            let question = try #require(try await questions(stage).first)
            let refused = try await answer(stage, question, ["decision": "allow"], status: 403)
            #expect(refused.code == "policy_denied")
            let id = question["id"]?.string ?? ""
            let terminal = try stage.terminal("consent", "allow", id)
            let said = try await terminal.end()
            #expect(said.status == 4, "\(said)")
            let denial = curl(
                stage, "-H", "Content-Type: application/json", "-d", #"{"decision":"deny"}"#,
                "http://ringback/v1/consents/\(id)")
            let own = try await stage.run("/usr/bin/setsid", ["--wait"] + denial)
            #expect(own.out.contains("policy_denied"), "\(own)")
            // Once the shell that started it has ended, it is no descendant of this process any more.
            let orphan = #"while grep -q "^PPid:.$0\$" /proc/$$/status; do :; done; exec "$@""#
            let detached = ["/bin/sh", "-c", #"sh -c "$0" $$ "$@" >/dev/null 2>&1 &"#, orphan]
            #expect(try await stage.startApart(detached + denial).end().status == 0)
            let denied = try await asking.answer()
            #expect(denied.status == 403 && denied.code == "policy_denied")
            // The same program and session by way of ringback.
            let token = try await stage.ringback("token", "work", status: 4)
            let late = try await asker(stage, "?timeout=1").end()
            #expect(late.out.contains("consent_timeout"), "\(late)")
            for text in [String(describing: refused), String(describing: denied), token.err, late.out] {
                #expect(!text.contains("ringback consent") && !text.contains("/v1/consents"), "\(text)")
            }
        }
    }

    @Test(ControlGroup.canStartApart) func `is asked for three programs at a time, and the fourth is refused at once`()
        async throws
    {
        try await play { stage in
            let waiting = try [asker(stage), asker(stage), asker(stage)]
            let open = try await questions(stage, 3)
            let fourth = try await asker(stage).end()
            #expect(fourth.out.contains("consent_required"), "\(fourth)")
            for question in open { _ = try await answer(stage, question, ["decision": "allow"]) }
            for program in waiting { #expect(try await program.end().out.contains("access_token")) }
            #expect(try await audit(stage, "consents_flooded").count == 1)
        }
    }

    /// Both terminals are made by script(1) in one control group, as by an emulator that makes none for each of them.
    @Test(.enabled(if: ControlGroup.isPossible, ControlGroup.reason))
    func `is given in another terminal of the same emulator, and not by its programs without a terminal`() async throws
    {
        try await play { stage in
            let group = try ControlGroup()
            defer { group.remove() }
            func start(_ words: [String], inTerminal: Bool = true) throws -> Program {
                let command = words.map { "'\($0)'" }.joined(separator: " ")
                let all = group.words(
                    ["/usr/bin/setsid", "--wait"]
                        + (inTerminal ? ["/usr/bin/script", "-qec", command, "/dev/null"] : words))
                return try stage.start(all[0], Array(all.dropFirst()))
            }
            // The terminal that asks has a further one inside, in which it answers itself.
            let answer = "\(stage.directory)/answer"
            let script = #""$@" & until test -s "$0"; do :; done; /usr/bin/script -qec "$(cat "$0")" /dev/null; "#
            let asking = try start(
                ["/bin/sh", "-c", script + #"echo "status $?"; wait"#, answer]
                    + curl(stage, "http://ringback/v1/accounts/work/session?timeout=60"))
            let id = try #require(try await questions(stage).first?["id"]?.string)
            let denial = curl(
                stage, "-H", "Content-Type: application/json", "-d", #"{"decision":"deny"}"#,
                "http://ringback/v1/consents/\(id)")
            let refused = try await start(denial, inTerminal: false).end()
            #expect(refused.out.contains("policy_denied"), "\(refused)")
            try stage.write("\(Programs.path("ringback")) consent allow \(id)", to: answer)
            try await stage.eventually("a refusal") { asking.output.value.text.contains("status 4") }
            let answered = try await start([Programs.path("ringback"), "consent", "allow", id]).end()
            #expect(answered.status == 0, "\(answered)")
            #expect(try await asking.end().out.contains("access_token"))
        }
    }

    /// `ringback exec --relay`, whose command `curl` requests the user's claims from the provider.
    private func relayed(_ stage: Stage, by program: String = "/usr/bin/curl") throws -> ApartProgram {
        let options = ["exec", "work", "--relay", "API=\(stage.sandbox.origin)", "--"]
        let script = #"exec "$0" -sS --max-time 90 -w '\n' "$API/userinfo" "$API/userinfo""#
        return try stage.startApart(
            [Programs.path("ringback")] + options + ["/usr/bin/env", "/bin/sh", "-c", script, program])
    }

    @Test(ControlGroup.canStartApart)
    func `is asked for the command of a relay, once, and no answer of its own is the relay's`()
        async throws
    {
        try await play { stage in
            try await stage.ringback("origin", "add", stage.sandbox.origin, "--account", "work", status: 0)
            let first = try relayed(stage)
            let question = try #require(try await questions(stage).first)
            #expect(question["operation"] == "lookup", "\(question)")
            #expect(question["program"]?["executable"] == "/usr/bin/curl", "\(question)")
            _ = try await answer(stage, question, ["decision": "allow", "remember": "session"])
            let served = try await first.end()
            #expect(served.out.components(of: "alice@example.org") == 2, "\(served)")
            // Another command is asked about anew, and the relay says what was decided.
            let copy = "\(stage.directory)/bin/fetch"
            #expect(try await stage.run("/bin/cp", ["/usr/bin/curl", copy]).status == 0)
            let second = try relayed(stage, by: copy)
            let next = try #require(try await questions(stage).first)
            #expect(next["program"]?["executable"] == .string(copy), "\(next)")
            _ = try await answer(stage, next, ["decision": "deny"])
            let refused = try await second.end()
            #expect(refused.out.components(of: "policy_denied") == 2 && refused.out.contains(copy), "\(refused)")
            #expect(!refused.out.contains("alice@example.org"), "\(refused)")
            #expect(try await audit(stage, "consent_decided").count == 2)
        }
    }

    @Test func `is a notice at the first use with notify, and nothing at the next`() async throws {
        try await play("consent = \"notify\"") { stage in
            let events = try await stage.listen(to: "/v1/events?account=work")
            for _ in 0..<3 { #expect(try await stage.token() != nil) }
            #expect(try await events.next("account_used")["operation"] == "token")
            #expect(try await audit(stage, "account_used").count == 1)
        }
    }

    @Test func `is denied from the next request on, also on an open connection`() async throws {
        try await play("consent = \"allow\"") { stage in
            let connection = try stage.connect()
            func ask() async throws -> Answer {
                await connection.send(Stage.request("GET", "/v1/accounts/work/session"))
                return try await connection.answer()
            }
            #expect(try await ask().status == 200)
            try stage.write(configuration: Self.configuration("consent = \"deny\""))
            try await stage.ringback("reload", status: 0)
            #expect(try await ask().code == "policy_denied")
            try stage.write(configuration: Self.configuration("consent = \"deny\"\nprograms = [\"/usr/bin/curl\"]"))
            try await stage.ringback("reload", status: 0)
            #expect(try await ask().code == "policy_denied")
            #expect(try await asker(stage).end().out.contains("access_token"))
            try await stage.ringback("expose", "ci", "--account", "work", status: 4)
        }
    }

    @Test func `names the program that called ringback, in the log as to itself`() async throws {
        try await play("consent = \"allow\"") { stage in
            let peer = try await stage.api("GET", "/v1/peer")["program"]
            try await stage.ringback("token", "work", status: 0)
            let taken = try await audit(stage, "issued_token")
            #expect(taken.last?["executable"]?.string == Programs.path("ringback"))
            #expect(taken.last?["program"] == peer?["text"], "\(taken)")
        }
    }
}
