import Glibc
import RingbackBase
import Testing

@Suite struct `ringback's verbs` {
    @Test func `token prints the token in every format`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            let token = try #require(session["access_token"]?.string)
            let expected = [
                ["token", "work"]: token, ["token", "work", "--format", "raw"]: token,
                ["token", "work", "--format=header"]: "Authorization: Bearer \(token)",
                ["token", "--issuer", stage.sandbox.origin]: token,
                ["token", "work", "--min-valid", "3000", "--timeout", "5", "--subject", "alice"]: token,
                ["token", "work", "--kind", "id_token"]: session["id_token"]?.string ?? "",
            ]
            for (arguments, line) in expected {
                let output = try await stage.run("ringback", arguments)
                #expect(
                    output.status == 0 && output.out == line + "\n" && output.err.isEmpty, "\(arguments): \(output)")
            }
            let mail = try await stage.ringback("token", "work", "--format", "xoauth2")
            let plain = "user=alice@example.org\u{1}auth=Bearer \(token)\u{1}\u{1}"
            #expect(mail.out == Base64.encode(plain.utf8) + "\n")
            let bearer = try await stage.ringback("token", "work", "--format", "oauthbearer")
            let response = "n,a=alice@example.org,\u{1}auth=Bearer \(token)\u{1}\u{1}"
            #expect(bearer.out == Base64.encode(response.utf8) + "\n")
            let helper = try await stage.ringback("token", "work", "--format", "json-headers")
            #expect(try JSON(parsing: helper.out.utf8)["Authorization"]?.string == "Bearer \(token)")
            for arguments in [["--format", "json"], ["--json"]] {
                let json = try await stage.run("ringback", ["token", "work"] + arguments)
                let document = try JSON(parsing: json.out.utf8)
                #expect(document["access_token"]?.string == token)
                #expect(document["subject"]?.string == "alice")
                #expect(document["refresh_token"] == nil)
            }
        }
    }

    @Test func `token's exit status says what is wrong`() async throws {
        try await Stage.play { stage in
            let expected: [([String], Int32, String)] = [
                (["work"], 3, "Run: ringback login work"), (["play"], 64, "play"),
                ([], 64, "Usage"), (["work", "--min-valid", "soon"], 64, "Usage"),
                (["work", "--format", "xml"], 64, "xml"), (["work", "--unknown"], 64, "--unknown"),
                (["work", "--socket", "\(stage.directory)/none"], 2, "ringbackd"),
            ]
            for (arguments, status, text) in expected {
                let output = try await stage.run("ringback", ["token"] + arguments)
                #expect(output.status == status && output.out.isEmpty, "\(arguments): \(output)")
                #expect(output.err.contains(text), "\(arguments): \(output)")
            }
            try await stage.signIn()
            let long = try await stage.ringback("token", "work", "--min-valid", "99999")
            #expect(long.status == 0 && long.err.contains("shorter than the 99999 s of --min-valid"), "\(long)")
            let other = try await stage.ringback("token", "work", "--subject", "bob")
            #expect(other.status == 1 && other.out.isEmpty, "\(other)")
        }
    }

    @Test func `token --sign-in signs in first`() async throws {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let token = try stage.start(
                "ringback", ["token", "work", "--sign-in"], environment: ["BROWSER": browser])
            _ = try await Browser.deliver(Browser.signIn(at: opened.line()))
            let ended = try await token.end()
            let line = "\(try await stage.token() ?? "")\n"
            #expect(ended.status == 0 && ended.out == line, "\(ended)")
            #expect(ended.err.contains("Signed in to work as alice@example.org"))
        }
    }

    @Test func `session, accounts and status show the daemon's state`() async throws {
        try await Stage.play { stage in
            #expect(try await stage.ringback("session", "work").status == 3)
            try await stage.signIn()
            let token = try await stage.token() ?? "?"
            let session = try await stage.ringback("session", "work")
            #expect(session.status == 0, "\(session)")
            for text in ["alice@example.org", stage.sandbox.origin, "openid email offline_access", "Bearer"] {
                #expect(session.out.contains(text), "\(session)")
            }
            #expect(!session.out.contains(token))
            let json = try await stage.ringback("session", "work", "--json")
            let document = try JSON(parsing: json.out.utf8)
            #expect(document["subject"] == "alice" && document["access_token"] == nil && !json.out.contains(token))
            let whole = try await stage.ringback("session", "work", "--json", "--show-token", "--include", "id_token")
            let tokens = try JSON(parsing: whole.out.utf8)
            #expect(tokens["access_token"]?.string == token && tokens["id_token"] != nil)
            for arguments in [["--show-token"], ["--json", "--include", "id_token"], ["--include", "provider_token"]] {
                let output = try await stage.run("ringback", ["session", "work"] + arguments)
                #expect(output.status == 64 && output.out.isEmpty && output.err.contains("--show-token"), "\(output)")
            }

            let accounts = try await stage.ringback("accounts")
            #expect(accounts.status == 0 && accounts.lines.count == 3, "\(accounts)")
            #expect(accounts.lines[1].hasPrefix("home ") && accounts.lines[1].contains("unauthenticated"))
            #expect(accounts.lines[2].hasPrefix("work ") && accounts.lines[2].contains("alice@example.org"))
            let list = try JSON(parsing: await stage.ringback("accounts", "--json").out.utf8)
            #expect(list["accounts"]?.array?.compactMap { $0["name"]?.string } == ["home", "work"])
            let one = try JSON(parsing: await stage.ringback("accounts", "work", "--json").out.utf8)
            #expect(one["state"]?.string == "authenticated")
            #expect(try await stage.ringback("accounts", "play").status == 64)

            let status = try await stage.ringback("status")
            #expect(status.status == 0, "\(status)")
            for text in [
                "pid \(stage.daemon?.pid ?? 0)", stage.socket, "sealed-file", "1 authenticated, 1 unauthenticated",
            ] {
                #expect(status.out.contains(text), "\(text) in \(status)")
            }
            let counts = try JSON(parsing: await stage.ringback("status", "--json").out.utf8)
            #expect(counts["accounts"]?["authenticated"]?.integer == 1)
        }
    }

    @Test func `audit says that there is no such account`() async throws {
        try await Stage.play { stage in
            let unknown = try await stage.ringback("audit", "--account", "nope")
            #expect(unknown.status == 64 && unknown.out.isEmpty && unknown.err.contains("nope"), "\(unknown)")
            #expect(try await stage.ringback("audit", "--account", "work").status == 0)
        }
    }

    @Test func `audit leaves out what ringback itself asked for`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            _ = try await stage.token()
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.api("POST", "/v1/reload").status == 200)
            let shown = try await stage.ringback("audit")
            #expect(shown.status == 0 && shown.err.contains("To see all: ringback audit --all"), "\(shown)")
            // The other program's.
            let reload = "POST /v1/reload"
            #expect(shown.out.contains("issued_token") && shown.out.ranges(of: reload).count == 1, "\(shown)")
            let all = try await stage.ringback("audit", "--all")
            #expect(all.status == 0 && all.err.isEmpty && all.out.ranges(of: reload).count == 2, "\(all)")
            #expect(try await stage.ringback("audit", "--json").out.ranges(of: reload).count == 2)
        }
    }

    @Test func `refresh and logout say what they did`() async throws {
        try await Stage.play { stage in
            #expect(try await stage.ringback("refresh", "work").status == 3)
            try await stage.signIn()
            let token = try await stage.token()
            let refresh = try await stage.ringback("refresh", "work", "--force")
            #expect(refresh.status == 0 && refresh.out.hasPrefix("Refreshed work, token valid for "), "\(refresh)")
            #expect(try await stage.token() != token)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)

            try await stage.signIn("home", as: "bob")
            let logout = try await stage.ringback("logout", "work")
            #expect(logout.status == 0 && logout.out == "Signed out of work\n", "\(logout)")
            try await stage.expectNothingHeld(error: nil)
            #expect(try await stage.sandbox.counters()["revocations"] >= 1)
            #expect(try await stage.token("home") != nil)
            // Idempotent, and nothing more for the provider.
            let again = try await stage.ringback("logout", "work")
            #expect(again.status == 0 && again.out == "" && again.err == "work was not signed in.\n", "\(again)")
            let all = try await stage.ringback("logout", "--all")
            #expect(all.status == 0 && all.out == "Signed out of home\n", "\(all)")
            try await stage.expectNothingHeld("home", error: nil)
            #expect(try await stage.ringback("logout", "--all").status == 0)
            #expect(try await stage.ringback("logout").status == 64)
        }
    }

    @Test func `events prints what happens, without tokens`() async throws {
        try await Stage.play { stage in
            let json = try stage.start("ringback", ["events", "work", "--json"])
            let plain = try stage.start("ringback", ["events"])
            _ = try await json.line("initial_session")
            _ = try await plain.output.first("two accounts") { $0.lines.count == 2 ? true : nil }
            try await stage.signIn()
            try await stage.signIn("home")
            #expect(try await stage.ringback("refresh", "work", "--force").status == 0)
            #expect(try await stage.ringback("logout", "work").status == 0)
            let events = try await json.output.first("signed_out") { transcript in
                transcript.lines.last?.contains("signed_out") == true ? transcript.lines : nil
            }
            let documents = try events.map { try JSON(parsing: $0.utf8) }
            #expect(
                documents.map { $0["event"]?.string } == [
                    "initial_session", "signed_in", "token_refreshed", "signed_out",
                ])
            #expect(documents.allSatisfy { $0["account"]?.string == "work" && $0["at"]?.integer != nil })
            #expect(documents[1]["user"]?["email"]?.string == "alice@example.org")
            let ids = documents.compactMap { $0["id"]?.string.flatMap(Int.init) }
            #expect(ids.count == 3 && ids == ids.sorted())
            _ = try await plain.line("home") { $0.contains("home") && $0.contains("signed_in") }
            for program in [json, plain] {
                program.send(SIGINT)
                let ended = try await program.end()
                #expect(ended.status == 0 && ended.err.isEmpty, "\(ended)")
                #expect(!ended.out.contains("at-") && !ended.out.contains("rt-"))
            }
        }
    }

    @Test func `complete and open refuse what is no callback`() async throws {
        try await Stage.play { stage in
            for verb in ["complete", "open"] {
                let unknown = try await stage.ringback(verb, "http://127.0.0.1:1/callback/work?code=a&state=b")
                #expect(unknown.status == 1 && unknown.out.isEmpty, "\(unknown)")
                #expect(unknown.err.contains("ringback: ") && unknown.err.contains("Sign in failed"), "\(unknown)")
                #expect(try await stage.ringback(verb, "nonsense").status == 64)
                #expect(try await stage.ringback(verb, "a:b c").status == 64)
            }
            #expect(try await stage.ringback("complete", stdin: "").status == 64)
        }
    }

    @Test(arguments: ["ringback", "ringbackd"]) func `tells its version and its usage`(program: String) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let version = try await stage.run(program, ["--version"])
            // Executables that `Scripts/release` built tell their commit instead.
            let told = version.out.wholeMatch(of: /(.+) 0\.1\.0 \((development|commit [0-9a-f]{9}(\.changed)?)\)\n/)
            #expect(version.status == 0 && told?.1 == program[...], "\(version)")
            let help = try await stage.run(program, ["--help"])
            #expect(help.status == 0 && help.out.lowercased().contains("usage: \(program)") && help.err.isEmpty)
            let mistake = try await stage.run(program, ["--no-such-option"])
            #expect(mistake.status == 64 && mistake.out.isEmpty && mistake.err.contains("--no-such-option"))
        }
    }

    @Test func `help fits a screen of 80 columns and 24 lines, and names verbs that exist`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let help = try await stage.run("ringback", ["--help"], environment: ["COLUMNS": "80"]).out
            let lines = help.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 }, "\(help)")
            let verbs = Set(try await stage.verbs())
            let also = try #require(help.firstMatch(of: /Also: ([^.]+)\./)).1
            let named = also.split { ", \n".contains($0) }.map(String.init)
            let explained = lines.filter { $0.hasPrefix("  ") }.compactMap { $0.split(separator: " ").first }
            #expect(named.count > 10 && Set(named).isSubset(of: verbs), "\(named)")
            #expect(explained.filter { verbs.contains(String($0)) }.count >= 10, "\(explained)")
        }
    }

    @Test func `every verb explains itself`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let verbs = [
                ["account", "add"], ["login"], ["token"], ["session"], ["accounts"], ["status"], ["events"],
                ["refresh"], ["logout"], ["complete"], ["open"], ["scheme", "register"], ["scheme", "list"], ["doctor"],
                ["config", "check"], ["reload"], ["demo"],
            ]
            let overview = try await stage.ringback("--help-all")
            for verb in verbs {
                #expect(overview.out.contains(verb[0]))
                let help = try await stage.run("ringback", verb + ["--help"])
                #expect(
                    help.status == 0 && help.out.contains("USAGE: ringback \(verb.joined(separator: " "))"), "\(help)")
            }
        }
    }
}
