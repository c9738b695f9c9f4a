import Glibc
import RingbackBase
import Testing

@Suite struct `What to run after a project has refused a sign-in` {
    private func play(_ settings: [(String, JSON)] = [], _ test: (Stage) async throws -> Void) async throws {
        let people: JSON = [
            ["email": "mira@example.org", "password": "secret12"],
            ["email": "new+1@example.org", "password": "secret12", "confirmed": false],
            ["phone": "+4915112345678", "password": "secret12"],
            ["phone": "+4915112345679", "password": "secret12", "confirmed": false],
        ]
        let members = settings + [("autoconfirm", false), ("users", people)]
        try await Stage.playProject(.object(JSONObject(members.map { JSONObject.Member($0.0, $0.1) })), test)
    }

    private func line(_ stage: Stage, after arguments: [String], stdin: String = "secret12\n") async throws -> String {
        let refused = try await stage.run("ringback", arguments, stdin: stdin, status: 1, out: "")
        // One line alone: a second, shorter one would lead astray.
        #expect(!refused.err.contains("Run: ringback"), "\(refused)")
        let line = try #require(refused.err.split(separator: "run: ", maxSplits: 1).dropFirst().first, "\(refused)")
        return String(line.prefix { $0 != "\n" })
    }

    private func run(_ line: String, _ stage: Stage, stdin: String? = nil) async throws -> Output {
        try await stage.run(
            "/bin/sh", ["-c", line], stdin: stdin, environment: ["PATH": "\(Programs.directory):/usr/bin:/bin"])
    }

    /// Begins what the line says, takes the code of the message in another terminal, and ends. No person sits at a
    /// terminal here, so the line is told to wait.
    private func confirm(_ line: String, _ stage: Stage, _ box: String = "mailbox") async throws -> Output {
        let login = try stage.start(
            "/bin/sh", ["-c", "\(line) --wait"], environment: ["PATH": "\(Programs.directory):/usr/bin:/bin"])
        try await stage.awaitCode()
        let code = try await stage.code(box)
        try await stage.ringback("verify", "app", stdin: "\(code)\n", status: 0)
        return try await login.end()
    }

    @Test func `login at a project without a provider or method opens the sign-in page`() async throws {
        try await play { stage in
            let environment = stage.environment.merging(["BROWSER": "true"]) { $1 }
            let login = try TerminalProgram(["login", "app"], environment: environment)
            try await login.shows("app names no provider: choose how to sign in on the page.")
            try await login.shows("The sign-in page shows these two words: ")
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(flows.map { $0["method"] } == ["page"], "\(flows)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
            // Without a terminal nobody is asked.
            try await stage.ringback("login", "app", status: 64, says: "on a page: ringback login app --page.")
        }
    }

    @Test func `the advised command confirms an unconfirmed address or number`() async throws {
        try await play { stage in
            let line = try await line(
                stage, after: ["login", "app", "--method", "password", "--email", "new+1@example.org"])
            #expect(line == "ringback login app --method=otp --email=new+1@example.org")
            try await confirm(line, stage).expect(0, out: "Signed in to app as new+1@example.org\n")
            try await stage.ringback("logout", "app", status: 0)
            try await stage.logIn(email: "new+1@example.org")
            try await stage.ringback("logout", "app", status: 0)
            let other = try await self.line(
                stage, after: ["login", "app", "--method", "password", "--phone", "+4915112345679"])
            #expect(other == "ringback login app --method=otp --phone=+4915112345679")
            try await confirm(other, stage, "messages").expect(0)
        }
    }

    @Test(arguments: [true, false])
    func `the advised command signs in a user who has signed up before, whether the project says so or not`(
        saysSo: Bool
    ) async throws {
        try await play([("phone_autoconfirm", .bool(saysSo))]) { stage in
            if saysSo { try await stage.setProject(["autoconfirm": true]) }
            for who in [["--email", "mira@example.org"], ["--phone", "+4915112345678"]] {
                let line = try await line(stage, after: ["login", "app", "--method", "sign_up"] + who)
                #expect(line == "ringback login app --method=password \(who.joined(separator: "="))")
                try await run(line, stage, stdin: "secret12\n").expect(0, out: "Signed in to app as \(who[1])\n")
                try await stage.ringback("logout", "app", status: 0)
            }
        }
    }

    @Test func `the advised commands reset a forgotten password and sign up an unknown user`() async throws {
        try await play { stage in
            let forgotten = try await line(
                stage, after: ["login", "app", "--method", "password", "--email", "mira@example.org"],
                stdin: "wrong123\n")
            #expect(forgotten == "ringback supabase reset-password app --email=mira@example.org")
            let reset = try stage.terminal(
                "supabase", "reset-password", "app", "--email", "mira@example.org")
            try await reset.shows("sends another): ")
            reset.type(try await stage.code())
            try await reset.shows("empty to choose it later): ")
            reset.type("")
            #expect(try await reset.end().status == 0)
            try await stage.ringback("logout", "app", status: 0)
            try await stage.setProject(["autoconfirm": true])
            let unknown = try await line(
                stage, after: ["login", "app", "--method", "otp", "--email", "eve@example.org", "--no-create-user"])
            #expect(unknown == "ringback login app --method=sign_up --email=eve@example.org")
            try await run(unknown, stage, stdin: "secret12\n").expect(0, out: "Signed in to app as eve@example.org\n")
        }
    }

    @Test func `the advised command switches to the user to whom an identity belongs`() async throws {
        try await play { stage in
            let browser = Browser.environment
            try await stage.ringback("login", "app", "--with", "github", environment: browser, status: 0)
            try await stage.ringback("logout", "app", status: 0)
            try await stage.logIn()
            let refused = try await stage.ringback("supabase", "link", "app", "--with", "github", environment: browser)
            #expect(refused.err.contains("run: ringback login app --with=github --switch\n"), "\(refused)")
            try await stage.ringback(
                "login", "app", "--with", "github", "--switch", environment: browser, status: 0,
                out: "Signed in to app as alice@example.org\n")
        }
    }

    @Test func `the advised command repeats an expired login with its options, or adds --switch`() async throws {
        try await play { stage in
            // Nobody comes from a page that nobody opens.
            let late = try await stage.ringback(
                "login", "app", "--with", "github", "--timeout", "1", "--no-persist", environment: ["BROWSER": "true"],
                status: 6)
            #expect(
                late.err.hasSuffix("To begin again, run: ringback login app --with=github --no-persist\n"), "\(late)")
            try await stage.logIn()
            let browser = Browser.environment
            let other = try await stage.ringback("login", "app", "--with", "github", environment: browser, status: 1)
            let line = try #require(
                other.err.split(separator: "To replace the held session, run: ").dropFirst().first, "\(other)")
            #expect(line.hasPrefix("ringback login app --with=github --switch\n"), "\(other)")
            try await stage.run(
                "/bin/sh", ["-c", String(line.prefix { $0 != "\n" })],
                environment: browser.merging(["PATH": "\(Programs.directory):/usr/bin:/bin"]) { $1 }, status: 0,
                out: "Signed in to app as alice@example.org\n")
        }
    }

    @Test func `the advised command with --replace takes the place of a pending sign-in`() async throws {
        try await play { stage in
            let login = ["login", "app", "--method", "otp", "--email"]
            // No code can be read: the sign-in stays pending.
            try await stage.run("ringback", login + ["mira@example.org"], stdin: "", status: 4)
            let second = try await stage.run("ringback", login + ["new+1@example.org"], stdin: "", status: 1, out: "")
            let line = try #require(second.err.split(separator: "replace it (").dropFirst().first, "\(second)")
            let advised = String(line.prefix { $0 != ")" })
            #expect(advised == "ringback login app --method=otp --email=new+1@example.org --replace", "\(second)")
            try await run(advised, stage, stdin: "").expect(4)
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(flows.count { $0["status"] == "pending" } == 1, "\(flows)")
            let code = try await stage.code("mailbox")
            let verified = try await stage.ringback("verify", "app", stdin: "\(code)\n")
            #expect(verified.out == "Signed in to app as new+1@example.org\n", "\(verified)")
            // What is no sign-in cannot be replaced by one.
            try await stage.ringback("logout", "app", status: 0)
            _ = try await stage.run("ringback", login + ["mira@example.org"], stdin: "")
            let reset = try await stage.ringback(
                "supabase", "reset-password", "app", "--email", "new+1@example.org", stdin: "")
            #expect(reset.status != 0 && !reset.err.contains("--replace"), "\(reset)")
        }
    }

    @Test func `a login with a wrong api_key names the key and ringback doctor`() async throws {
        try await Stage.playProject { stage in
            try stage.write(
                configuration: Stage.project.replacing("sb_publishable_sandbox", with: "sb_publishable_wrong"))
            try await stage.ringback("reload", status: 0)
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(login.status != 0 && login.out.isEmpty, "\(login)")
            #expect(login.err.contains("api_key") && login.err.contains("ringback doctor app"), "\(login)")
        }
    }
}
