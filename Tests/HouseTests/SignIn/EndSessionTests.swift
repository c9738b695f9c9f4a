import RingbackBase
import Testing

/// Ending the person's session at the provider too, in their browser (OpenID Connect RP-Initiated Logout).
@Suite struct `logout --browser` {
    private let account = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email"]

        """

    private func parameters(_ stage: Stage) async throws -> JSON? {
        try await stage.sandbox.log().last { $0["endpoint"]?.string == "end_session" }?["parameters"]
    }

    @Test func `OIDF-40: logout --browser opens the provider's page with the ID token as hint`() async throws {
        try await Stage.playSignedIn(account) { stage in
            let idToken = try await stage.api("GET", "/v1/accounts/work/session?kind=id_token")["id_token"]?.string
            let (browser, opened) = try stage.recordingBrowser()
            try await stage.ringback(
                "logout", "work", "--browser", "--hint", environment: ["BROWSER": browser], status: 0,
                out: "Signed out of work\n")
            try await stage.expectNothingHeld(error: nil)
            // The browser's argument is an address that works once. The ID token is not in it.
            let entrance = try LocalURL(try await opened.line())
            #expect(entrance.path.hasPrefix("/start/"), "\(entrance.text)")
            #expect(!entrance.text.contains("id_token") && !entrance.text.contains("?"), "\(entrance.text)")
            let start = try await Browser.load(entrance)
            let url = start.location ?? ""
            #expect(start.status == 303 && url.hasPrefix(stage.sandbox.origin + "/logout?"), "\(start)")
            #expect(try await Browser.load(entrance).status == 410)
            let page = try await Browser.load(LocalURL(url))
            #expect(page.status == 200, "\(page)")
            let sent = try await parameters(stage)
            #expect(sent?["client_id"] == "ringback-demo" && sent?["id_token_hint"]?.string == idToken)
            #expect(sent?["state"]?.string?.isEmpty == false && sent?["post_logout_redirect_uri"] == nil)
            // The sign-out revoked as ever, and the audit log tells that the ID token went out.
            try await stage.sandbox.wait("revocation", count: 2, what: "seen")
            let audit = try await stage.ringback("audit", "--json")
            #expect(audit.out.contains("id_token"), "\(audit)")
        }
    }

    @Test func `LOGOUT-02, OIDF-41, OIDF-42: the state that comes back from a logout page is ignored`() async throws {
        let configured = account + "post_logout_redirect_uri = \"http://127.0.0.1:9/bye\"\n"
        try await Stage.playSignedIn(configured) { stage in
            let logout = try await stage.ringback("logout", "work", "--no-browser", status: 0)
            #expect(logout.lines.count == 2, "\(logout)")
            let page = try await Browser.load(LocalURL(String(logout.lines[1])))
            let state = try #require(try await parameters(stage)?["state"]?.string)
            #expect(page.location == "http://127.0.0.1:9/bye?state=\(state)", "\(page)")
            for end in ["", "?state=\(state)", "?state=\(state)x"] {
                try await stage.api(
                    "POST", "/v1/callbacks", ["url": .string("http://127.0.0.1:9/bye" + end)], status: 400,
                    code: "invalid_callback")
            }
            try await stage.signIn()
        }
    }

    @Test func `logout ends the session before it asks the provider for the page`() async throws {
        try await Stage.playSignedIn(account) { stage in
            // A daemon that has just started has asked its provider for nothing.
            _ = try await stage.stopDaemon()
            try await stage.startDaemon()
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 200)
            try await stage.sandbox.control(["faults": [["endpoint": "discovery", "kind": "gate"]]])
            let logout = try stage.start("ringback", ["logout", "work", "--no-browser"])
            try await stage.sandbox.wait("discovery")
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 401)
            try await stage.sandbox.control(["clear": true])
            let ended = try await logout.end().expect(0)
            #expect(ended.lines.count == 2, "\(ended)")
        }
    }

    @Test func `logout --no-browser and --json print the page`() async throws {
        try await Stage.playSignedIn(account) { stage in
            let (browser, _) = try stage.recordingBrowser()
            let json = try await stage.ringback(
                "logout", "work", "--browser", "--hint", "--json", environment: ["BROWSER": browser])
            let document = try json.json
            #expect(json.status == 0 && document["state"] == "unauthenticated", "\(json)")
            #expect(document["end_session_url"]?.string?.contains("id_token_hint=") == true)
            #expect(document["end_session_open_url"]?.string?.contains("/start/") == true, "\(json)")
            try await stage.signIn()
            let plain = try await stage.ringback("logout", "work", "--no-browser", status: 0)
            #expect(plain.lines.count == 2, "\(plain)")
            #expect(
                plain.lines[1].hasPrefix(stage.sandbox.origin + "/logout?client_id=ringback-demo&state="), "\(plain)")
            // Signed out, a browser may still be signed in there.
            let again = try await stage.ringback(
                "logout", "work", "--no-browser", "--hint", status: 0, says: "was not signed in")
            #expect(again.lines.count == 1 && !again.out.contains("id_token_hint"), "\(again)")
            for arguments in [["--all", "--browser"], ["work", "--hint"]] {
                try await stage.run("ringback", ["logout"] + arguments, status: 64)
            }
        }
    }

    @Test func `logout --browser prints the page if the daemon has no address to open`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let page = "https://id.example/logout?client_id=x&id_token_hint=a.b.c"
            let answer: JSON = [
                "name": "work", "provider": "oidc", "state": "unauthenticated", "source": "x", "accounts": [],
                "end_session_url": .string(page),
                "end_session_open_url_error": [
                    "title": "Port in use", "status": 409, "code": "port_in_use", "recovery": "none",
                    "detail": "No address for a browser to open can be listened for: port 7 is in use.",
                ],
            ]
            let socket = "\(stage.directory)/run/far.sock"
            let far = try stage.start(
                "/usr/bin/env",
                ["python3", "-B", "\(Document.root)/Tests/Programs/hostile_daemon.py", socket, answer.text])
            _ = try await far.line("who listens") { $0 == "listening" }
            let browser = "\(stage.directory)/bin/browser"
            try stage.write("#!/bin/sh\necho start >>'\(stage.directory)/starts'\n", to: browser, mode: 0o700)
            try await stage.ringback(
                "logout", "work", "--browser", "--hint", "--socket", socket, environment: ["BROWSER": browser],
                status: 0, says: page, "No browser was started. No address for a browser")
            #expect(FileTree.text(of: "\(stage.directory)/starts") == nil)
        }
    }
}
