import Glibc
import RingbackBase
import Testing

/// A program of systemd that opens a socket and starts a service with it when a client connects.
private let activator = "/usr/bin/systemd-socket-activate"

@Suite struct `ringback alone` {
    private func look(
        _ stage: Stage, _ added: [String: String] = [:]
    ) async throws -> (lines: [String], text: String) {
        // `true` stands for a browser; nothing is opened.
        let environment = stage.environment.merging(["BROWSER": "true"]) { $1 }.merging(added) { $1 }
        let ended = try await TerminalProgram([], environment: environment, columns: 80, rows: 24).end()
        let screen = TerminalScreen(ended.text, columns: 80, rows: 24)
        #expect(ended.status == 0 && screen.scrolledAway == [] && screen.unknown == [], "\(ended)")
        return (screen.lines, ended.text)
    }

    @Test func `says who is signed in until when, what is in order and next, and asks no provider`() async throws {
        try await Stage.play { stage in
            // At once: a daemon that has just started is not shown as locked.
            let before = try await look(stage)
            #expect(before.lines.contains { $0.hasPrefix("· work") && $0.contains("not signed in") }, "\(before)")
            #expect(before.lines.last == "Next: ringback login home", "\(before)")
            try await stage.signIn("home")
            let requests = try await stage.sandbox.counters(issuer: "/tenant-a").description
            let roots = try await stage.sandbox.counters().description
            let after = try await look(stage)
            for words in [
                "ACCOUNT  STATE          WHO                TOKEN VALID",
                "✓ home     signed in      alice@example.org  for ", "✓ daemon", "✓ browser",
            ] { #expect(after.lines.contains { $0.contains(words) }, "\(words): \(after)") }
            #expect(after.lines.last == "Next: ringback login work", "\(after)")
            #expect(try await stage.sandbox.counters(issuer: "/tenant-a").description == requests)
            #expect(try await stage.sandbox.counters().description == roots)
            #expect(after.text.contains("\u{1B}[32m✓"), "\(after)")
            try await stage.signIn("work")
            let done = try await look(stage)
            #expect(done.lines.last == "Nothing to do. For a token: ringback token home", "\(done)")

            for plain in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
                let shown = try await look(stage, plain)
                #expect(!shown.text.contains("\u{1B}"), "\(shown)")
                #expect(shown.lines.contains { $0.hasPrefix(plain["TERM"] == nil ? "✓ home" : "+ home") }, "\(shown)")
            }
        }
    }

    @Test func `elsewhere than on a terminal prints the usage`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let output = try await stage.ringback(status: 0, prints: "Usage: ringback")
            #expect(output.err.isEmpty, "\(output)")
        }
    }

    @Test func `marks the default account, which is the next one to sign in to`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("use", "work", "--config", stage.configuration, status: 0)
            let (lines, text) = try await look(stage)
            #expect(lines.contains { $0.hasPrefix("· work (default)") }, "\(text)")
            #expect(lines.contains { $0.hasPrefix("· home  ") }, "\(text)")
            #expect(lines.last == "Next: ringback login work", "\(text)")
        }
    }

    @Test func `says all of what is wrong at 80 columns without a display`() async throws {
        try await Stage.play { stage in
            let environment = stage.environment.filter { !["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"].contains($0.key) }
            let ended = try await TerminalProgram([], environment: environment, columns: 80, rows: 24).end()
            let lines = TerminalScreen(ended.text, columns: 80, rows: 24).lines
            #expect(lines.contains { $0.hasSuffix("address yourself.") }, "\(ended)")
            #expect(!lines.contains { $0.hasSuffix("…") }, "\(ended)")
        }
    }

    @Test func `names the account with a problem first, and the command that helps`() async throws {
        try await Stage.play { stage in
            try await stage.signIn("work")
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_grant"]]
            ])
            _ = try await stage.ringback("refresh", "work", "--force")
            let (lines, text) = try await look(stage)
            #expect(lines.dropFirst().first?.hasPrefix("! work") == true, "\(text)")
            #expect(lines.contains("    Session expired. Please sign in again."), "\(text)")
            #expect(lines.last == "Next: ringback login work", "\(text)")
        }
    }

    @Test func `a sign-in that failed is no problem of an account that is signed in`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback(
                "login", "app", "--with", "gitlab", "--no-browser", status: 1, out: "", says: "not available")
            #expect(try await stage.api("GET", "/v1/accounts/app")["error"] != nil)
            let (lines, text) = try await look(stage)
            #expect(lines.contains { $0.hasPrefix("✓ app") } && !text.contains("not available"), "\(text)")
            #expect(lines.last?.contains("ringback doctor") == false, "\(text)")
            let checks = try await stage.ringback("doctor", "app", "--json").json["checks"]?.array ?? []
            let session = checks.filter { $0["check"] == "session" }
            #expect(session.map { $0["level"] } == ["ok"], "\(checks)")
            let listed = try await stage.ringback("accounts", status: 0)
            #expect(!listed.out.contains("PROBLEM"), "\(listed)")
            try await stage.ringback("login", "app", status: 0, prints: "already signed in")
        }
    }

    @Test func `wraps the reason of a problem`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("login", "work", "--no-browser", "--timeout", "1", status: 6)
            let (lines, _) = try await look(stage)
            let below = lines.drop(while: { !$0.hasPrefix("! work") }).dropFirst()
            let reason = below.prefix(while: { $0.first == " " }).map { String($0.dropFirst(4)) }
            let error = try await stage.api("GET", "/v1/accounts/work")["error"]?["detail"]?.string ?? ""
            #expect(error.hasPrefix(reason.joined(separator: " ")) && reason.count > 1, "\(lines), \(error)")
        }
    }

    @Test func `fits the screen whatever there is to say`() async throws {
        let accounts = (10..<50).map { number in
            """
            [accounts.the-account-of-the-whole-department-for-research-\(number)]
            issuer = "{sandbox}"
            client_id = "ringback-demo"

            """
        }
        try await Stage.play(accounts.joined()) { stage in
            let (lines, text) = try await look(
                stage, ["BROWSER": "/nowhere/" + String(repeating: "a-browser-that-is-not-there/", count: 12)])
            #expect(lines.contains { $0.hasPrefix("! browser") }, "\(text)")
            #expect(lines.contains { $0.hasPrefix("  … and ") && $0.hasSuffix(" more: ringback accounts") }, "\(text)")
            #expect(lines.count <= 23, "\(text)")
        }
    }

    @Test func `without an account says how to add one, and with a mistake where to look`() async throws {
        try await Stage.play("") { stage in
            let empty = try await look(stage)
            #expect(empty.lines.first == "No account is configured.", "\(empty)")
            #expect(empty.lines.last == "Next: ringback account add", "\(empty)")
            try stage.write(configuration: "[accounts.work]\nisuer = \"x\"\n")
            #expect(try await look(stage).lines.last == "Next: ringback config check")
        }
    }

    @Test func `starts no daemon: without one it says how`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let (lines, text) = try await look(stage)
            #expect(lines.contains { $0.hasPrefix("✗ daemon") }, "\(text)")
            #expect(lines.contains { $0.hasPrefix("· work") && $0.contains("not known") }, "\(text)")
            #expect(lines.last == "Next: ringbackd &", "\(text)")
            #expect(FileTree.names(in: "\(stage.directory)/run") == [])
        }
    }

    @Test(.enabled(if: unsafe access(activator, X_OK) == 0, "needs \(activator), of the package systemd"))
    func `makes no connection to a socket that would start one`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write(
                """
                #!/bin/sh
                case "$*" in
                *SubState*) printf 'Listen=%s (Stream)\\nSubState=listening\\n' \(stage.socket) ;;
                *is-enabled*) echo enabled ;; *is-active*) echo active ;;
                esac

                """, to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            let waiting = try stage.start(
                activator, ["--listen", stage.socket, Programs.path("ringbackd"), "--config", stage.configuration])
            _ = try await waiting.errorLine("the activator's readiness") { $0.hasPrefix("Listening on ") }
            let (lines, text) = try await look(stage)
            #expect(
                lines.contains { $0.hasPrefix("✓ daemon") && $0.contains("the first request starts it") }, "\(text)")
            #expect(lines.contains { $0.hasPrefix("✓ unit") }, "\(text)")
            #expect(lines.last == "Next: ringback accounts", "\(text)")
            // With the first connection it becomes the daemon.
            #expect(FileTree.text(of: "/proc/\(waiting.pid)/comm")?.hasPrefix("systemd-socket") == true)
            #expect(waiting.endedStatus == nil)
        }
    }
}
