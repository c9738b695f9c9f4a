import Glibc
import RingbackBase
import Testing

@Suite struct `On a screen of 80 columns and 24 rows` {
    private func start(_ stage: Stage, _ arguments: [String], _ added: [String: String] = [:]) throws -> TerminalProgram
    {
        let environment = stage.environment.merging(added) { _, new in new }
        return try TerminalProgram(arguments, environment: environment, columns: 80, rows: 24)
    }

    private func screen(_ program: TerminalProgram) -> TerminalScreen {
        TerminalScreen(program.text, columns: 80, rows: 24)
    }

    /// The wait goes on for some seconds: the line is drawn anew each second.
    private func expectStillness(
        _ program: TerminalProgram, ending: String = " left (Ctrl-C cancels)"
    ) async throws -> TerminalScreen {
        for _ in 0..<3 { try await program.shows(" left") }
        let screen = screen(program)
        #expect(screen.scrolledAway == [] && screen.unknown == [], "\(screen.lines)")
        #expect(screen.lines.count { $0.hasPrefix("Waiting for ") } == 1, "\(screen.lines)")
        #expect(screen.lines.last?.hasSuffix(ending) == true, "\(screen.lines)")
        return screen
    }

    private static let longNames = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        [accounts.the-account-of-the-whole-department-for-research-and-development]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email"]

        """

    @Test(arguments: [
        ("work", "work, ", " left (c: address, Ctrl-C cancels)"),
        (
            "the-account-of-the-whole-department-for-research-and-development", "the-account-of-the-whole-department",
            " left"
        ),
    ])
    func `login waits on one line, which is cut only if nothing else helps`(
        account: String, shown: String, ending: String
    ) async throws {
        try await Stage.play(Self.longNames) { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try start(stage, ["login", account], ["BROWSER": browser])
            let url = try await opened.line()
            let lines = try await expectStillness(login, ending: ending).lines
            #expect(lines.count == 1 && lines[0].hasPrefix("Waiting for the sign-in to \(shown)"), "\(lines)")
            _ = try await Browser.deliver(Browser.signIn(at: url))
            try await login.shows("Signed in to")
            #expect(try await login.end().status == 0)
            let left = screen(login).lines
            #expect(left == TerminalScreen("Signed in to \(account) as alice@example.org", columns: 80, rows: 24).lines)
        }
    }

    @Test func `c shows the address while the browser is open`() async throws {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try start(stage, ["login", "work"], ["BROWSER": browser])
            _ = try await opened.line()
            try await login.shows("(c: address, Ctrl-C cancels)")
            login.press(Array("xC".utf8))
            try await login.shows("Open this page in a browser:")
            try await login.shows("\(stage.sandbox.origin)/authorize?")
            // It still waits for the browser, and shows no key.
            try await login.shows(" left (c: address, Ctrl-C cancels)")
            // After five seconds a page that was not opened would be printed. The line is drawn anew each second.
            for _ in 0..<7 { try await login.shows(" left") }
            #expect(login.text.ranges(of: "Open this page in a browser:").count == 1, "\(login.text)")
            #expect(!screen(login).lines.contains { $0.contains("xC") })
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `config check is wrapped`() async throws {
        try await Stage.play(Self.longNames) { stage in
            let check = try start(stage, ["config", "check"])
            let ended = try await check.end()
            let lines = ended.text.split(whereSeparator: \.isNewline)
            #expect(ended.status == 0 && lines.contains { $0.hasPrefix("{port} stands for a free port") }, "\(ended)")
            // An address or a command stays whole.
            let long = lines.filter { $0.count > 80 && $0.contains(" ") && !$0.contains("http") }
            #expect(long.isEmpty, "\(long)")
        }
    }

    @Test func `accounts fit with the provider's host and the end of a session, or the lack of a refresh token`()
        async throws
    {
        let more = Stage.twoAccounts.replacing("[accounts.work]", with: "[accounts.mail]")
        try await Stage.play(Self.longNames + more) { stage in
            try await stage.sandbox.control(["refresh_expires_in": true, "refresh_token_lifetime": 86_400])
            try await stage.signIn("work")
            try await stage.sandbox.control(["refresh_tokens": "never"])
            try await stage.signIn("mail")
            let accounts = try start(stage, ["accounts", "work"])
            #expect(try await accounts.end().status == 0)
            let lines = screen(accounts).lines
            #expect(lines.count == 2 && lines[0].hasSuffix("  TOKEN VALID  SIGNED IN UNTIL"), "\(lines)")
            let day = /work  127\.0\.0\.1:\S+  signed in  alice@exa\S+  for \d+ min   \d{4}-\d\d-\d\d \d\d:\d\d/
            #expect(lines[1].wholeMatch(of: day) != nil, "\(lines)")

            let all = try start(stage, ["accounts"])
            #expect(try await all.end().status == 0)
            let shown = screen(all).lines
            // The problem of the account without a refresh token is below its row.
            #expect(shown.contains { $0.hasPrefix("mail ") && $0.hasSuffix("  no refresh token") }, "\(shown)")
            #expect(shown.contains { $0.hasPrefix("the-acco") }, "\(shown)")
            #expect(shown.count { !$0.hasPrefix("    ") } == 5, "\(shown)")
        }
    }

    @Test func `a failing browser leaves the address and the way on the screen`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, ["login", "work"], ["BROWSER": "/bin/false"])
            try await login.shows("let the browser come back: ")
            let screen = screen(login)
            #expect(screen.scrolledAway == [] && screen.unknown == [], "\(screen.lines)")
            let lines = screen.lines
            #expect(lines.contains { $0.contains("BROWSER is “/bin/false”, which ended with status 1.") }, "\(lines)")
            #expect(lines.contains("Open this page in a browser:"), "\(lines)")
            #expect(lines.contains { $0.hasPrefix("  \(stage.sandbox.origin)/authorize?") }, "\(lines)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `a browser that cannot be started is named`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, ["login", "work"], ["BROWSER": "/nonexistent"])
            try await login.shows("let the browser come back: ")
            let lines = screen(login).lines
            #expect(lines.contains { $0.contains("BROWSER is “/nonexistent”, which cannot be started.") }, "\(lines)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `a code for another device stays with its address, whatever is drawn`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, ["login", "work", "--method", "device"])
            try await login.shows("and enter the code:  ")
            try await login.shows("Waiting for the code ")
            let lines = try await expectStillness(login).lines
            #expect(lines.contains("  \(stage.sandbox.origin)/device"), "\(lines)")
            let line = try #require(lines.first { $0.hasPrefix("and enter the code:  ") })
            let code = String(line.dropFirst("and enter the code:  ".count))
            #expect(lines.contains { $0.hasPrefix("Enter no code that another person sent you") }, "\(lines)")
            #expect(lines.last?.hasPrefix("Waiting for the code \(code) for work, ") == true, "\(lines)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `a question is wrapped`() async throws {
        try await Stage.play { stage in
            try await stage.ringback(
                "account", "add", "play", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", status: 0)
            let remove = try start(stage, ["account", "remove", "play"])
            try await remove.shows("[y/N] ")
            let lines = remove.text.split(whereSeparator: \.isNewline)
            #expect(lines.count > 1 && lines.allSatisfy { $0.count <= 80 || $0.contains("/") }, "\(remove.text)")
            remove.send(SIGINT)
            #expect(try await remove.end().status != 0)
        }
    }

    @Test func `the lines of the demo fit`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let demo = try start(stage, ["demo"])
            try await demo.shows("everything was removed again.")
            let ended = try await demo.end()
            let long = ended.text.split(whereSeparator: \.isNewline).filter { $0.count > 80 }
            #expect(ended.status == 0 && long.isEmpty, "\(ended)")
        }
    }

    @Test func `the audit log has program and details below each entry`() async throws {
        try await Stage.playSignedIn { stage in
            _ = try await stage.token()
            let audit = try start(stage, ["audit"])
            let ended = try await audit.end()
            #expect(ended.status == 0, "\(ended)")
            let lines = ended.text.split(whereSeparator: \.isNewline).map(String.init)
            // A path without blanks may be longer than a line.
            let broken = lines.dropFirst().filter { $0.count > 80 && $0.dropFirst(4).contains(" ") }
            #expect(broken.isEmpty && lines.dropFirst().first == "    PROGRAM  DETAILS", "\(broken)")
            let entry = lines.drop { !$0.contains("  issued_token  ") }.prefix(2)
            #expect(entry.first?.contains("  work  ") == true && entry.last?.hasPrefix("    /") == true, "\(lines)")
            // Scripts get one line for each entry.
            let script = try await stage.ringback("audit")
            #expect(script.lines.allSatisfy { !$0.hasPrefix(" ") } && script.out.contains("PROGRAM"), "\(script)")
        }
    }

    @Test func `the address to paste the answer of is not drawn away`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, ["login", "work", "--no-browser"])
            try await login.shows("let the browser come back: ")
            let screen = screen(login)
            #expect(screen.scrolledAway == [] && screen.unknown == [], "\(screen.lines)")
            #expect(screen.lines.first?.hasPrefix("\(stage.sandbox.origin)/authorize?") == true, "\(screen.lines)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `no line of status, of help or about a mistake is broken in the middle of a word`() async throws {
        try await Stage.play { stage in
            for (arguments, status) in [
                (["status"], Int32(0)), (["session", "--help"], 0), (["origin", "add", "--help"], 0), (["exec"], 64),
                (["origin", "add", "http://git.example.org", "--account", "work"], 64),
                (["audit", "--limit", "0"], 64),
            ] {
                let program = try start(stage, arguments)
                let ended = try await program.end()
                #expect(ended.status == status, "\(ended)")
                let lines = ended.text.split(whereSeparator: \.isNewline)
                // A path has no place to be broken at.
                #expect(lines.allSatisfy { $0.count <= 80 || $0.contains("/") }, "\(ended.text)")
                let piped = try await stage.run("ringback", arguments)
                if status == 64 { #expect(piped.err.hasPrefix("ringback: "), "\(piped)") }
                // The other has too many options for a usage line.
                guard arguments == ["session", "--help"] else { continue }
                let usage = piped.lines.filter { $0.hasPrefix("USAGE: ") || $0.hasPrefix("       [") }
                #expect(usage.count == 1 && usage[0].count > 80, "\(piped.out)")
            }
        }
    }
}
