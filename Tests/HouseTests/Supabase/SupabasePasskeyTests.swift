// Passkeys at a Supabase project: an app holds the ceremony, with a key of its own here, and the project checks every
// byte of it.

import RingbackBase
import Testing

@Suite struct `A passkey` {
    private static let on: JSON = ["passkeys": true]

    @Test func `a passkey is added through the socket API and signs its user in`() async throws {
        try await Stage.playProject(Self.on) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            let id = try await stage.addPasskey(key)
            try await stage.ringback("logout", "app")
            let events = try stage.start("ringback", ["events", "app", "--json"])
            _ = try await events.line("a start") { $0.contains(#""event":"initial_session""#) }

            let flow = try await stage.api("POST", "/v1/accounts/app/sign-in", ["method": "passkey"])
            #expect(flow.status == 201 && flow["waiting_for"] == "passkey", "\(flow)")
            #expect(try await stage.account("app")["state"] == "authenticating")
            let credential = try key.get(try #require(flow["options"]))
            let path = "/v1/flows/\(flow["id"]?.string ?? "")/verify"
            let ended = try await stage.api("POST", path, ["credential": credential])
            #expect(ended.status == 200 && ended["status"] == "completed", "\(ended)")
            let account = try await stage.account("app")
            #expect(account["state"] == "authenticated" && account["user"]?["email"] == "mira@example.org")
            _ = try await events.line("the sign-in") { $0.contains(#""event":"signed_in""#) }
            let session = try await stage.api("GET", "/v1/accounts/app/session")
            #expect(session.status == 200 && session["aal"] == "aal1")

            let list = try await stage.api("GET", "/v1/accounts/app/passkeys")
            let entry = try #require(list["passkeys"]?.array?.first)
            #expect(entry["id"]?.string == id && entry["last_used_at"] != nil && list["passkeys"]?.array?.count == 1)
            try await stage.eventually("the lines of the audit log") {
                let audit = try await stage.ringback("audit", "--json").out
                return audit.contains(#""method":"passkey","outcome":"completed""#)
                    && audit.contains(#""passkey_registered""#) && audit.contains(id)
            }
        }
    }
}

@Suite struct `ringback with a passkey` {
    private static let on: JSON = ["passkeys": true]

    @Test func `the passkey verbs add, name, use and remove a passkey`() async throws {
        try await Stage.playProject(Self.on) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            let none = try await stage.ringback("supabase", "passkeys", "app")
            #expect(none.status == 0 && none.out.isEmpty && none.err.contains("register-passkey app"), "\(none)")
            let adding = try await stage.startWithPipe(
                "ringback", ["supabase", "register-passkey", "app", "--credential-fd", "3"])
            let options = try JSON(parsing: try await adding.line("the options").utf8)
            #expect(options["attestation"] == "none")
            // As a person's editor would lay it out.
            try await stage.answer(with: try key.create(options).text.replacing(",\"", with: ",\n  \"") + "\n")
            let added = try await adding.end()
            let id = added.out.split(separator: "Added ").last?.prefix { $0 != "\n" } ?? ""
            #expect(added.status == 0 && id.utf8.count == 36, "\(added)")
            #expect(added.err.contains("ringback supabase rename-passkey app \(id) NAME"), "\(added)")
            let named = try await stage.ringback("supabase", "rename-passkey", "app", String(id), "My key")
            #expect(named.status == 0 && named.out == "\(id) is My key now.\n", "\(named)")

            try await stage.ringback("logout", "app")
            let login = try await stage.startWithPipe(
                "ringback", ["login", "app", "--method", "passkey", "--credential-fd", "3"])
            let asked = try JSON(parsing: try await login.line("the options").utf8)
            try await stage.answer(with: try key.get(asked).text + "\n")
            let ended = try await login.end()
            #expect(ended.status == 0 && ended.lines.last == "Signed in to app as mira@example.org", "\(ended)")

            let list = try await stage.ringback("supabase", "passkeys", "app")
            #expect(list.status == 0 && list.out.hasPrefix("NAME") && list.out.contains("My key"), "\(list)")
            #expect(list.out.contains(id))
            let wrong = try await stage.ringback("supabase", "remove-passkey", "app", "x")
            #expect(wrong.status == 64 && wrong.err.contains("See: ringback supabase passkeys app"), "\(wrong)")
            let removed = try await stage.ringback("supabase", "remove-passkey", "app", String(id))
            #expect(removed.status == 0 && removed.out == "Removed \(id)\n", "\(removed)")
            let again = try await stage.ringback("supabase", "remove-passkey", "app", String(id))
            #expect(again.status == 1 && again.err.contains("Passkey not found"), "\(again)")
        }
    }

    @Test func `passkey verbs name a project without passkeys and a wrong credential`() async throws {
        try await Stage.playProject { stage in
            let off = try await stage.ringback("login", "app", "--method", "passkey", stdin: "{}\n")
            #expect(off.status == 1 && off.out.isEmpty && off.err.contains("passkey_disabled"), "\(off)")
            try await stage.setProject(["passkeys": true])
            let nothing = try await stage.ringback("login", "app", "--method", "passkey")
            #expect(nothing.status == 4 && nothing.out.hasPrefix(#"{"challenge":"#), "\(nothing)")
            let garbage = try await stage.ringback("login", "app", "--method", "passkey", stdin: "hello\n")
            #expect(garbage.status == 64 && garbage.err.contains("is not a JSON object"), "\(garbage)")
            let empty = try await stage.ringback("login", "app", "--method", "passkey", stdin: "{}\n")
            #expect(empty.status == 64 && empty.err.contains("not a credential"), "\(empty)")
            // Whoever gave up left nothing behind.
            #expect(try await stage.account("app")["flow"] == nil)
            let stranger = try await stage.ringback("supabase", "register-passkey", "app", stdin: "{}\n")
            #expect(stranger.status == 3 && stranger.out.isEmpty, "\(stranger)")
        }
    }

    @Test func `passkey verbs report wrong options and a missing daemon before they ask the project`() async throws {
        let mistakes: [([String], String)] = [
            (
                ["login", "app", "--method", "password", "--email", "a@b", "--credential-fd", "3"],
                "--credential-fd does not"
            ),
            (["login", "app", "--method", "passkey", "--email", "a@b"], "--email does not belong"),
            (["login", "app", "--method", "passkey", "--no-browser"], "--no-browser does not belong"),
            (
                ["login", "app", "--method", "passkey", "--credential-fd=-1"],
                "A descriptor must be a number, 0 or more."
            ),
            (
                ["supabase", "register-passkey", "app", "--credential-fd=-1"],
                "A descriptor must be a number, 0 or more."
            ),
            (["supabase", "rename-passkey", "app", "x", ""], "1 to 120 bytes"),
            (["supabase", "rename-passkey", "app", "x", String(repeating: "k", count: 121)], "1 to 120 bytes"),
        ]
        let verbs: [[String]] = [
            ["login", "app", "--method", "passkey"], ["supabase", "passkeys", "app"],
            ["supabase", "register-passkey", "app"], ["supabase", "rename-passkey", "app", "x", "y"],
            ["supabase", "remove-passkey", "app", "x"],
        ]
        try await Stage.play("", startsDaemon: false) { stage in
            for (arguments, words) in mistakes {
                let output = try await stage.run("ringback", arguments)
                #expect(output.status == 64 && output.out.isEmpty && output.err.contains(words), "\(output)")
            }
            for verb in verbs {
                let output = try await stage.run("ringback", verb)
                #expect(output.status == 2 && output.out.isEmpty, "\(verb): \(output)")
            }
        }
    }

    @Test func `login by passkey on a terminal can be given up with an empty line`() async throws {
        try await Stage.playProject(Self.on) { stage in
            let login = try stage.terminal("login", "app", "--method", "passkey")
            try await login.shows(#"{"challenge":"#)
            try await login.shows("use another method.")
            try await login.shows("Credential (it is not shown; empty gives up): ")
            login.type("a code perhaps")
            try await login.shows("is not a JSON object")
            try await login.shows("empty gives up): ")
            login.type("")
            let ended = try await login.end()
            #expect(ended.status == 4 && ended.text.contains("was cancelled"), "\(ended)")
            #expect(!ended.text.contains("a code perhaps"))
        }
    }
}

extension SecurityKey {
}
