import Glibc
import RingbackBase
import Testing

@Suite struct `git` {
    static let isInstalled = unsafe access("/usr/bin/git", X_OK) == 0
    static let hasServer = unsafe isInstalled && access("/usr/lib/git-core/git-http-backend", X_OK) == 0

    private static let origin = """
        [[origin]]
        url = "https://git.example.org/*"
        account = "work"

        """

    private func runGit(
        _ stage: Stage, _ arguments: String..., stdin: String? = nil
    ) async throws -> Output {
        stage.link(ringbackAs: "git-credential-ringback")
        let all = ["-c", "credential.helper=ringback", "-c", "protocol.version=2"] + arguments
        return try await stage.run(
            "/usr/bin/git", all, stdin: stdin,
            environment: ["GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"])
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `git gets the token from the helper and reports a refused one`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            let token = try #require(try await stage.token())
            let server = "protocol=https\nhost=git.example.org\n"
            let filled = try await runGit(stage, "credential", "fill", stdin: server).expect(0)
            #expect(filled.lines.contains("username=oauth2") && filled.lines.contains("password=\(token)"), "\(filled)")

            // What the user typed somewhere else is none of ours.
            _ = try await runGit(stage, "credential", "reject", stdin: server + "username=oauth2\npassword=other\n")
            let refreshes = try await stage.sandbox.counters().tokenRequests("refresh_token")
            #expect(try await runGit(stage, "credential", "fill", stdin: server).out == filled.out)
            let rejected = try await runGit(
                stage, "credential", "reject", stdin: server + "username=oauth2\npassword=\(token)\n"
            ).expect(0)
            #expect(rejected.err.isEmpty, "\(rejected)")
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == refreshes)
            let again = try await runGit(stage, "credential", "fill", stdin: server)
            let second = try #require(try await stage.token())
            #expect(again.lines.contains("password=\(second)") && second != token, "\(again)")
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == refreshes + 1)

            // The second one in a row.
            let warned = try await runGit(
                stage, "credential", "reject", stdin: server + "username=oauth2\npassword=\(second)\n")
            #expect(warned.err.contains("A scope is probably missing"), "\(warned)")
            let same = try await runGit(stage, "credential", "fill", stdin: server)
            #expect(same.out == again.out && same.err.contains("A scope is probably missing"), "\(same)")
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == refreshes + 1)
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `git asks its other helpers only where no origin fits`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origin) { stage in
            let other = try await runGit(stage, "credential", "fill", stdin: "protocol=https\nhost=other.example.org\n")
            #expect(other.err.contains("terminal prompts disabled") && !other.err.contains("ringback:"), "\(other)")
            let ours = try await runGit(stage, "credential", "fill", stdin: "protocol=https\nhost=git.example.org\n")
            #expect(ours.status != 0 && ours.err.contains("ringback login work"), "\(ours)")
            #expect(ours.err.contains("told us to quit"), "\(ours)")
            try await stage.stopDaemon()
            let alone = try await runGit(stage, "credential", "fill", stdin: "protocol=https\nhost=git.example.org\n")
            #expect(alone.err.contains("Start it") && alone.err.contains("terminal prompts disabled"), "\(alone)")
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `ringback git-credential speaks git's helper protocol`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            let token = try #require(try await stage.token())
            let server = "protocol=https\nhost=git.example.org\n"
            let expected = "username=oauth2\npassword=\(token)\nephemeral=1\npassword_expiry_utc="
            for arguments in [["git-credential", "get"], ["git-credential", "get", "--socket", stage.socket]] {
                let answer = try await stage.run("ringback", arguments, stdin: server, status: 0)
                #expect(answer.out.hasPrefix(expected), "\(answer)")
            }
            // As git 2.46 and later write and read it.
            let bearer = try await stage.ringback(
                "git-credential", "get",
                stdin: "capability[]=authtype\ncapability[]=state\n\(server)wwwauth[]=Bearer realm=\"git\"\n")
            #expect(
                bearer.out.hasPrefix("capability[]=authtype\nauthtype=Bearer\ncredential=\(token)\nephemeral=1\n"),
                "\(bearer)")
            let capability = try await stage.ringback("git-credential", "capability")
            #expect(capability.out == "version 0\ncapability authtype\n")
            for action in ["store", "approve", "unheard-of"] {
                let nothing = try await stage.ringback("git-credential", action, stdin: server, status: 0, out: "")
                #expect(nothing.err.isEmpty, "\(nothing)")
            }
            for wrong in ["protocol=https\nhost=a\nhost=b\n", "protocol", String(repeating: "a", count: 60_000)] {
                let refused = try await stage.ringback("git-credential", "get", stdin: wrong, status: 1, out: "")
                #expect(!refused.err.isEmpty, "\(refused.err)")
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "git" && $0["origin"] == "https://git.example.org/*" })
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `git without a credential helper gets the user name and the token from ringback-askpass`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            let token = try #require(try await stage.token())
            stage.link(ringbackAs: "ringback-askpass")
            let program = "\(stage.directory)/bin/ringback-askpass"
            func fill(_ server: String) async throws -> Output {
                try await stage.run(
                    "/usr/bin/git", ["-c", "credential.helper=", "credential", "fill"], stdin: server,
                    environment: ["GIT_ASKPASS": program, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"])
            }
            let filled = try await fill("protocol=https\nhost=git.example.org\n").expect(0)
            #expect(filled.lines.contains("username=oauth2") && filled.lines.contains("password=\(token)"), "\(filled)")
            let named = try await fill("protocol=https\nhost=git.example.org\nusername=ada@x.org\n").expect(0)
            #expect(named.lines.contains("username=ada@x.org") && named.lines.contains("password=\(token)"), "\(named)")
            for server in ["protocol=https\nhost=other.example.org\n", "protocol=http\nhost=git.example.org\n"] {
                let other = try await fill(server)
                #expect(other.status != 0 && !other.out.contains("password="), "\(other)")
                #expect(other.err.contains("origin add") && other.err.contains("terminal prompts disabled"), "\(other)")
            }
            try await stage.run(
                program, ["Enter passphrase for key '/home/ada/.ssh/id_ed25519': "], status: 1, out: "",
                says: "The prompt asks neither")
            try await stage.ringback("logout", "work", status: 0)
            try await stage.run(
                program, ["Password for 'https://git.example.org': "], status: 3, out: "", says: "ringback login work")
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "askpass" && $0["origin"] == "https://git.example.org/*" })
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"), arguments: [false, true])
    func `git-credential waits on a terminal, and opens the page at Enter or at once`(isAtOnce: Bool) async throws {
        let accounts =
            isAtOnce
            ? Stage.twoAccounts.replacing("[accounts.work]", with: "[accounts.work]\ninteractive = \"open\"")
            : Stage.twoAccounts
        try await Stage.play(
            accounts + Self.origin, sandboxArguments: ["--user", "alice", "--auto-approve", "alice"]
        ) { stage in
            let browser = "\(stage.directory)/bin/xdg-open"
            let log = "\(stage.directory)/opened.log"
            try stage.write(
                "#!/bin/sh\nprintf '%s\\n' \"$1\" >>'\(log)'\nexec curl -sSL -o /dev/null \"$1\"\n", to: browser,
                mode: 0o700)
            let waiting = try TerminalProgram(
                ["git-credential", "get"], environment: stage.environment.merging(["DISPLAY": ":0"]) { _, new in new })
            waiting.type("protocol=https")
            waiting.type("host=git.example.org")
            waiting.press([0x04])
            try await waiting.shows("git is waiting for work.")
            if !isAtOnce { waiting.type("") }
            #expect(try await waiting.end().status == 0, "\(waiting.text)")
            let token = try #require(try await stage.token())
            #expect(waiting.text.contains("password=\(token)"), "\(waiting.text)")
            let opened = (FileTree.text(of: log) ?? "").split(separator: "\n")
            #expect(opened.count == 1 && opened.allSatisfy { $0.contains("/start/") }, "\(opened)")
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `git-credential says that a sign-in was cancelled a moment ago, and begins one at Enter`() async throws {
        try await Stage.play(
            Stage.twoAccounts + Self.origin, sandboxArguments: ["--user", "alice", "--auto-approve", "alice"]
        ) { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await login.line()
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
            let browser = "\(stage.directory)/browser"
            try stage.write("#!/bin/sh\nexec curl -sSL -o /dev/null \"$1\"\n", to: browser, mode: 0o700)
            func start(_ variables: [String: String]) throws -> TerminalProgram {
                let waiting = try TerminalProgram(
                    ["git-credential", "get"], environment: stage.environment.merging(variables) { $1 })
                waiting.type("protocol=https")
                waiting.type("host=git.example.org")
                waiting.press([0x04])
                return waiting
            }
            let alone = try start([:])
            try await alone.shows("A sign-in was denied or cancelled in the last five minutes")
            let refused = try await alone.end()
            #expect(refused.status == 3 && refused.text.contains("Run: ringback login work"), "\(refused)")

            let waiting = try start(["BROWSER": browser])
            try await waiting.shows("Press Enter to begin one.")
            waiting.type("")
            #expect(try await waiting.end().status == 0, "\(waiting.text)")
            let token = try #require(try await stage.token())
            #expect(waiting.text.contains("password=\(token)"), "\(waiting.text)")
        }
    }

    @Test(.enabled(if: isInstalled, "git is not installed"))
    func `git-credential leaves no sign-in behind at Ctrl-C, though Enter opened its page`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origin) { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let waiting = try TerminalProgram(
                ["git-credential", "get"], environment: stage.environment.merging(["BROWSER": browser]) { $1 })
            waiting.type("protocol=https")
            waiting.type("host=git.example.org")
            waiting.press([0x04])
            try await waiting.shows("git is waiting for work.")
            waiting.type("")
            _ = try await opened.line()
            waiting.send(SIGINT)
            #expect(try await waiting.end().status != 0, "\(waiting.text)")
            try await stage.eventually("the end of the sign-in") {
                let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
                return !flows.isEmpty && flows.allSatisfy { $0["status"] != "pending" }
            }
        }
    }

    @Test(.enabled(if: hasServer, "git-http-backend is not installed"))
    func `git clones and pushes with the token, also after it was revoked`() async throws {
        try await Stage.playSignedIn { stage in
            let root = "\(stage.directory)/repositories"
            #expect(unsafe mkdir(root, 0o700) == 0 && mkdir("\(root)/team", 0o700) == 0)
            try await runGit(stage, "init", "-q", "--bare", "\(root)/team/a.git").expect(0)
            _ = try await runGit(stage, "-C", "\(root)/team/a.git", "config", "http.receivepack", "true")
            let server = try stage.start(
                "/usr/bin/env",
                [
                    "python3", "-B", "\(Document.root)/Tests/Programs/git_server.py", root,
                    "\(stage.sandbox.origin)/userinfo",
                ])
            let port = try await server.line("the port of the git server")
            let url = "http://127.0.0.1:\(port)/team/a.git"
            try await stage.ringback("origin", "add", "http://127.0.0.1:\(port)/team", "--account", "work", status: 0)

            let work = "\(stage.directory)/work"
            // Without the path nobody knows that the origin is meant.
            let bare = try await runGit(stage, "clone", "-q", url, work)
            #expect(bare.status != 0 && bare.err.contains("terminal prompts disabled"), "\(bare)")
            try await runGit(stage, "-c", "credential.useHttpPath=true", "clone", "-q", url, work).expect(0)
            try await runGit(
                stage, "-C", work, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-q",
                "--allow-empty", "-m", "first"
            ).expect(0)
            try await runGit(
                stage, "-C", work, "-c", "credential.useHttpPath=true", "push", "-q", "origin", "HEAD:main"
            ).expect(0)
            let heads = try await runGit(stage, "-C", "\(root)/team/a.git", "rev-parse", "main").expect(0)
            #expect(heads.out.count > 20, "\(heads)")
            #expect(!server.output.value.text.contains("refused"))

            // The provider ends the token early: git's first try fails, and its next one has another token.
            let token = try #require(try await stage.token())
            try await stage.revoke(token)
            let failed = try await runGit(stage, "-C", work, "-c", "credential.useHttpPath=true", "fetch", "-q")
            #expect(failed.status != 0, "\(failed)")
            try await runGit(stage, "-C", work, "-c", "credential.useHttpPath=true", "fetch", "-q").expect(0)
        }
    }
}

extension Stage {
    fileprivate func revoke(_ token: String) async throws {
        let url = try LocalURL("\(sandbox.origin)/revoke")
        let body = "token=\(token)&token_type_hint=access_token&client_id=ringback-demo"
        let answer = try await tcp(
            url.port,
            "POST \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nConnection: close\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        guard answer.status == 200 else { throw Late(what: "a revocation, not \(answer)") }
    }
}
