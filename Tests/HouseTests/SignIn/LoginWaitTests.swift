import Glibc
import RingbackBase
import Testing

@Suite struct `The wait of ringback login` {
    private func startHeld(_ stage: Stage, _ arguments: [String], browser: String = "/bin/false") async throws
        -> Program
    {
        try await stage.sandbox.control(["faults": [["endpoint": "discovery", "kind": "gate"]]])
        let program = try stage.start("ringback", arguments, environment: ["BROWSER": browser])
        try await stage.sandbox.wait("discovery")
        return program
    }

    @Test(arguments: [
        ["login", "work"], ["login", "work", "--no-browser", "--json"], ["token", "work", "--sign-in"],
    ])
    func `login that is interrupted during discovery opens nothing and cancels its flow`(arguments: [String])
        async throws
    {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try await startHeld(stage, arguments, browser: browser)
            login.send(SIGINT)
            try await stage.sandbox.control(["release": true])
            try await login.end().expect(4, out: "", says: "The sign-in to work was cancelled.")
            let pending = try await stage.api("GET", "/v1/flows")["flows"]?.array?.filter { $0["status"] == "pending" }
            #expect(pending?.isEmpty == true)
            try await stage.expectNothingHeld(error: nil)
            // The first page that a browser was sent to is the one of this line.
            try await stage.run(browser, ["the test's own"], status: 0)
            #expect(try await opened.line() == "the test's own")
        }
    }

    @Test func `login says why a callback was refused and keeps waiting`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["perturb": [["name": "callback_no_iss", "count": 1]]])
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let page = try await login.line()
            let answer = try await Browser.deliver(Browser.signIn(at: page))
            _ = try await login.errorLine("the reason") {
                $0.contains("names no issuer (iss)") && $0.contains("The sign-in still waits.")
            }
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.first)
            #expect(flow["status"] == "pending" && flow["error"]?["code"] == "invalid_callback", "\(flow) \(answer)")
            let audit = try await stage.ringback("audit", "--json")
            #expect(audit.out.contains("callback_refused") && audit.out.contains("names no issuer"), "\(audit)")
            _ = try await Browser.deliver(Browser.signIn(at: page))
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `login says that it asks the provider`() async throws {
        try await Stage.play { stage in
            let login = try await startHeld(stage, ["login", "work", "--no-browser"])
            _ = try await login.errorLine("what it does") {
                $0 == "Asking the provider of work how to sign in… (Ctrl-C cancels)"
            }
            #expect(login.output.value.text.isEmpty)
            try await stage.sandbox.control(["release": true])
            _ = try await Browser.deliver(Browser.signIn(at: login.line()))
            let ended = try await login.end().expect(0, says: "Waiting for the sign-in to work")
            #expect(ended.lines.last == "Signed in to work as alice@example.org", "\(ended)")
            #expect(!ended.err.contains("in progress already"), "\(ended)")
        }
    }

    @Test func `login that joins a flow is bounded by its own --timeout`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let login = try await stage.ringback(
                "login", "work", "--no-browser", "--timeout", "3", status: 6,
                says: "was not finished within the 3 s of --timeout",
                "A sign-in to work is in progress already, and this command has joined it, ",
                " left. To begin another: ringback login work --replace")
            #expect(login.lines == [flow.authorizationURL])
            // The other's sign-in goes on, and the login's interest is gone: to cancel once more ends it.
            #expect(try await stage.api("GET", "/v1/flows/\(flow.id)")["status"]?.string == "pending")
            #expect(try await stage.api("DELETE", "/v1/flows/\(flow.id)")["status"]?.string == "cancelled")
        }
    }

    /// A login whose SIGHUP is as stated at its start, whatever the tests' own is.
    private func start(_ stage: Stage, hangup: String) throws -> Program {
        try stage.start(
            "/usr/bin/env", ["--\(hangup)-signal=HUP", Programs.path("ringback"), "login", "work", "--no-browser"])
    }

    @Test func `login whose terminal hangs up cancels its flow`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, hangup: "default")
            _ = try await login.line()
            let id = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first?["id"]?.string ?? ""
            login.send(SIGHUP)
            login.send(SIGHUP)
            let ended = try await login.end()
            #expect(ended.status == 4, "\(ended)")
            #expect(try await stage.api("GET", "/v1/flows/\(id)")["status"]?.string == "cancelled")
        }
    }

    @Test func `login under nohup outlives its terminal`() async throws {
        try await Stage.play { stage in
            let login = try start(stage, hangup: "ignore")
            let url = try await login.line()
            login.send(SIGHUP)
            _ = try await Browser.deliver(Browser.signIn(at: url))
            let ended = try await login.end().expect(0)
            #expect(ended.lines.last == "Signed in to work as alice@example.org", "\(ended)")
        }
    }
}

@Suite struct `A mistake of usage` {
    @Test func `wrong options of login are usage errors before any request`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let mistakes: [([String], String)] = [
                (["--timeout", "0"], "--timeout must be 1 to 3600 seconds."),
                (["--timeout=-1"], "--timeout must be 1 to 3600 seconds."),
                (["--timeout", "3601"], "--timeout must be 1 to 3600 seconds."),
                (["--timeout", "soon"], "soon"),
                (["--method", ""], "Please provide one of"),
            ]
            for (arguments, text) in mistakes {
                try await stage.run(
                    "ringback", ["login", "work"] + arguments, status: 64, out: "", says: text, "Usage: ringback login")
            }
            // These are none: the daemon is asked, and there is no daemon.
            for arguments in [["--timeout", "1"], ["--timeout", "3600"], ["--method", "browser"]] {
                let output = try await stage.run("ringback", ["login", "work"] + arguments, status: 2)
                #expect(!output.err.contains("Asking the provider"), "\(arguments): \(output)")
            }
        }
    }

    @Test func `a wrong URL for ringback complete is a usage error`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for url in ["nonsense", "", "a:b c", String(repeating: "a", count: 16_385) + ":"] {
                try await stage.ringback("complete", url, status: 64, out: "", says: "Usage: ringback complete")
            }
            // What is read is no argument, so the usage would not help.
            let read = try await stage.ringback("complete", stdin: "nonsense\n", status: 64, out: "")
            #expect(read.err == "ringback: A URL begins with a scheme, such as http:.\n")
            // Spaces and line ends around it are no mistake: the daemon is asked, and there is no daemon.
            try await stage.ringback("complete", " http://127.0.0.1:1/callback/work?code=a \n", status: 2)
        }
    }
}
