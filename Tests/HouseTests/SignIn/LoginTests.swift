import Glibc
import RingbackBase
import Testing

@Suite struct `ringback login` {
    @Test func `NAT-01: login opens the browser and says who is signed in`() async throws {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try stage.start("ringback", ["login", "work"], environment: ["BROWSER": browser])
            let url = try await opened.line()
            let flow = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first
            #expect(flow?["open_urls"]?.array?.last?["url"]?.string == url)
            _ = try await Browser.deliver(Browser.signIn(at: url))
            try await login.end().expect(
                0, out: "Signed in to work as alice@example.org\n",
                says: "Waiting for the sign-in to work at 127.0.0.1", "left")
        }
    }

    @Test func `login shows the last line that a browser wrote before it died`() async throws {
        try await Stage.play { stage in
            let browser = "\(stage.directory)/bin/dying"
            let script =
                "#!/bin/sh\necho starting\necho 'cannot open display: \u{1B}[1m:7' >&2\necho >&2\nkill -SEGV $$\n"
            try stage.write(script, to: browser, mode: 0o700)
            let login = try stage.start("ringback", ["login", "work"], environment: ["BROWSER": browser])
            let line = try await login.errorLine("the reason") { $0.hasPrefix("No browser was opened: ") }
            #expect(line.contains("which ended with status 139. Its last line: “cannot open display: "), "\(line)")
            #expect(!line.contains("\u{1B}") && line.hasSuffix("”. Run: ringback doctor"), "\(line)")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `login --json prints the flow, then the account`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser", "--json"])
            let flow = try JSON(parsing: try await login.line("the flow").utf8)
            #expect(flow["status"]?.string == "pending")
            #expect(flow["waiting_for"]?.string == "callback")
            _ = try await Browser.deliver(Browser.signIn(at: flow["authorization_url"]?.string ?? ""))
            let ended = try await login.end().expect(0)
            #expect(ended.lines.count == 2)
            let account = try JSON(parsing: (ended.lines.last ?? "").utf8)
            #expect(account["name"]?.string == "work")
            #expect(account["state"]?.string == "authenticated")
            #expect(account["user"]?["email"]?.string == "alice@example.org")
        }
    }

    @Test func `login of an unknown account lists the known ones`() async throws {
        try await Stage.play { stage in
            try await stage.ringback(
                "login", "play", "--no-browser", status: 64, out: "", says: "Known: home, work.",
                "ringback account add play --issuer URL")
            try stage.write(configuration: "")
            try await stage.ringback("reload", status: 0)
            try await stage.ringback("login", "play", "--no-browser", status: 64, says: "ringback account add play")
        }
    }

    @Test func `login that is denied at the provider ends with 4`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let callback = try await Browser.deny(at: login.line())
            let (answer, page) = try await Browser.deliver(callback)
            #expect(answer.status == 303 && answer.location == "/failed")
            #expect(page?.status == 200)
            try await login.end().expect(4, says: "denied at the provider")
            try await stage.expectNothingHeld(error: "access_denied")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
        }
    }

    @Test func `login that takes too long ends with 6`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser", "--timeout", "1"])
            let callback = try await Browser.signIn(at: login.line())
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array
            let id = flows?.first?["id"]?.string ?? ""
            let ended = try await login.end()
            #expect(ended.status == 6, "\(ended)")
            let flow = try await stage.api("GET", "/v1/flows/\(id)")
            #expect(flow["status"]?.string == "expired")
            #expect(flow["error"]?["code"]?.string == "flow_expired")
            #expect(flow["error"]?["detail"]?.string?.contains("/callback/work") == true)
            // Too late: the browser's page says so, and so does the API.
            #expect(try await Browser.load(callback).location == "/failed")
            try await stage.ringback("complete", callback.text, status: 6)
            try await stage.expectNothingHeld(error: "flow_expired")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
        }
    }

    @Test func `an interrupted login cancels its flow`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let callback = try await Browser.signIn(at: login.line())
            let id = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first?["id"]?.string ?? ""
            login.send(SIGINT)
            let ended = try await login.end()
            #expect(ended.status == 4, "\(ended)")
            #expect(try await stage.api("GET", "/v1/flows/\(id)")["status"]?.string == "cancelled")
            #expect(try await Browser.load(callback).location == "/unknown")
            #expect(try await stage.api("POST", "/v1/callbacks", ["url": .string(callback.text)]).status == 410)
            try await stage.expectNothingHeld(error: nil)
        }
    }

    @Test func `LB-14: login as another user changes nothing without --switch`() async throws {
        try await Stage.play { stage in
            try await stage.signIn(as: "alice")
            let token = try await stage.token()
            let login = try stage.start("ringback", ["login", "work", "--no-browser", "--again"])
            let (answer, _) = try await Browser.deliver(Browser.signIn(at: login.line(), as: "bob"))
            #expect(answer.location == "/failed")
            try await login.end().expect(
                1, says: "ringback login work --switch", "alice@example.org", "bob@example.org")
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.account()["error"]?["code"]?.string == "state_conflict")
            #expect(try await stage.token() == token)

            let switching = try stage.start("ringback", ["login", "work", "--no-browser", "--switch"])
            _ = try await Browser.deliver(Browser.signIn(at: switching.line(), as: "bob"))
            #expect(try await switching.end().lines.last == "Signed in to work as bob@example.org")
            #expect(try await stage.account()["subject"]?.string == "bob")
            #expect(try await stage.account()["error"] == nil)
            #expect(try await stage.token() != token)
        }
    }

    @Test func `verbs without a daemon end with 2`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for arguments in [["login", "work"], ["token", "work"], ["status"], ["accounts"], ["logout", "--all"]] {
                try await stage.run("ringback", arguments, status: 2, out: "", says: "ringbackd")
            }
        }
    }
}
