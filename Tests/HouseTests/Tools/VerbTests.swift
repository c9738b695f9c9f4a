import Glibc
import RingbackBase
import Testing

@Suite struct `ringback's verbs` {
    @Test func `token prints the token in every format`() async throws {
        try await Stage.playSignedIn { stage in
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
                let output = try await stage.run("ringback", arguments, status: 0, out: line + "\n")
                #expect(output.err.isEmpty, "\(arguments): \(output)")
            }
            let mail = try await stage.ringback("token", "work", "--format", "xoauth2")
            let plain = "user=alice@example.org\u{1}auth=Bearer \(token)\u{1}\u{1}"
            #expect(mail.out == Base64.encode(plain.utf8) + "\n")
            let bearer = try await stage.ringback("token", "work", "--format", "oauthbearer")
            let response = "n,a=alice@example.org,\u{1}auth=Bearer \(token)\u{1}\u{1}"
            #expect(bearer.out == Base64.encode(response.utf8) + "\n")
            let helper = try await stage.ringback("token", "work", "--format", "json-headers")
            #expect(try helper.json["Authorization"]?.string == "Bearer \(token)")
            for arguments in [["--format", "json"], ["--json"]] {
                let json = try await stage.run("ringback", ["token", "work"] + arguments)
                let document = try json.json
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
                try await stage.run("ringback", ["token"] + arguments, status: status, out: "", says: text)
            }
            try await stage.signIn()
            try await stage.ringback(
                "token", "work", "--min-valid", "99999", status: 0, says: "shorter than the 99999 s of --min-valid")
            try await stage.ringback("token", "work", "--subject", "bob", status: 1, out: "")
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
            try await stage.ringback("session", "work", status: 3)
            try await stage.signIn()
            let token = try await stage.token() ?? "?"
            let session = try await stage.ringback("session", "work", status: 0)
            for text in ["alice@example.org", stage.sandbox.origin, "openid email offline_access", "Bearer"] {
                #expect(session.out.contains(text), "\(session)")
            }
            #expect(!session.out.contains(token))
            let json = try await stage.ringback("session", "work", "--json")
            let document = try json.json
            #expect(document["subject"] == "alice" && document["access_token"] == nil && !json.out.contains(token))
            let whole = try await stage.ringback("session", "work", "--json", "--show-token", "--include", "id_token")
            let tokens = try whole.json
            #expect(tokens["access_token"]?.string == token && tokens["id_token"] != nil)
            for arguments in [["--show-token"], ["--json", "--include", "id_token"], ["--include", "provider_token"]] {
                try await stage.run(
                    "ringback", ["session", "work"] + arguments, status: 64, out: "", says: "--show-token")
            }

            let accounts = try await stage.ringback("accounts", status: 0)
            #expect(accounts.lines.count == 3, "\(accounts)")
            let place = try LocalURL(stage.sandbox.origin).authority
            #expect(accounts.lines[1].hasPrefix("home ") && accounts.lines[1].contains("\(place)  not signed in"))
            #expect(accounts.lines[2].hasPrefix("work ") && accounts.lines[2].contains("\(place)  signed in "))
            #expect(accounts.lines[2].contains("alice@example.org"))
            let list = try JSON(parsing: await stage.ringback("accounts", "--json").out.utf8)
            #expect(list["accounts"]?.array?.compactMap { $0["name"]?.string } == ["home", "work"])
            let one = try JSON(parsing: await stage.ringback("accounts", "work", "--json").out.utf8)
            #expect(one["state"]?.string == "authenticated")
            try await stage.ringback("accounts", "play", status: 64)

            let status = try await stage.ringback("status", status: 0)
            for text in [
                "pid \(stage.daemon?.pid ?? 0)", stage.socket, "sealed-file", "1 signed in, 1 not signed in",
            ] {
                #expect(status.out.contains(text), "\(text) in \(status)")
            }
            let counts = try JSON(parsing: await stage.ringback("status", "--json").out.utf8)
            #expect(counts["accounts"]?["authenticated"]?.integer == 1)
        }
    }

    @Test func `audit says that there is no such account`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("audit", "--account", "nope", status: 64, out: "", says: "nope")
            try await stage.ringback("audit", "--account", "work", status: 0)
        }
    }

    @Test func `audit leaves out what ringback itself asked for`() async throws {
        try await Stage.playSignedIn { stage in
            _ = try await stage.token()
            try await stage.ringback("reload", status: 0)
            #expect(try await stage.api("POST", "/v1/reload").status == 200)
            let shown = try await stage.ringback("audit", status: 0, says: "To see all: ringback audit --all")
            // The other program's.
            let reload = "POST /v1/reload"
            #expect(shown.out.contains("issued_token") && shown.out.ranges(of: reload).count == 1, "\(shown)")
            let all = try await stage.ringback("audit", "--all", status: 0)
            #expect(all.err.isEmpty && all.out.ranges(of: reload).count == 2, "\(all)")
            #expect(try await stage.ringback("audit", "--json").out.ranges(of: reload).count == 2)
        }
    }

    @Test func `refresh and logout say what they did`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("refresh", "work", status: 3)
            try await stage.signIn()
            let token = try await stage.token()
            let refresh = try await stage.ringback("refresh", "work", "--force", status: 0)
            #expect(refresh.out.hasPrefix("Refreshed work, token valid for "), "\(refresh)")
            #expect(try await stage.token() != token)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)

            try await stage.signIn("home", as: "bob")
            try await stage.ringback("logout", "work", status: 0, out: "Signed out of work\n")
            try await stage.expectNothingHeld(error: nil)
            #expect(try await stage.sandbox.counters()["revocations"] >= 1)
            #expect(try await stage.token("home") != nil)
            // Idempotent, and nothing more for the provider.
            let again = try await stage.ringback("logout", "work", status: 0, out: "")
            #expect(again.err == "work was not signed in.\n", "\(again)")
            try await stage.ringback("logout", "--all", status: 0, out: "Signed out of home\n")
            try await stage.expectNothingHeld("home", error: nil)
            try await stage.ringback("logout", "--all", status: 0)
            try await stage.ringback("logout", status: 64)
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
            try await stage.ringback("refresh", "work", "--force", status: 0)
            try await stage.ringback("logout", "work", status: 0)
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
                let ended = try await program.end().expect(0)
                #expect(ended.err.isEmpty, "\(ended)")
                #expect(!ended.out.contains("at-") && !ended.out.contains("rt-"))
            }
        }
    }

    @Test func `tells its version and its usage`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for program in ["ringback", "ringbackd"] {
                let version = try await stage.run(program, ["--version"])
                // Executables that `Scripts/release` built tell their commit instead.
                let told = version.out.wholeMatch(of: /(.+) 0\.1\.0 \((development|commit [0-9a-f]{9}(\.changed)?)\)\n/)
                #expect(version.status == 0 && told?.1 == program[...], "\(version)")
                let help = try await stage.run(program, ["--help"], status: 0)
                #expect(help.out.lowercased().contains("usage: \(program)") && help.err.isEmpty)
                try await stage.run(program, ["--no-such-option"], status: 64, out: "", says: "--no-such-option")
            }
        }
    }

    @Test func `help fits a screen of 80 columns and 24 lines, and names verbs that exist`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let help = try await stage.ringback("--help", environment: ["COLUMNS": "80"]).out
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
}
