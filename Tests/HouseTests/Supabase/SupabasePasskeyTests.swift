import RingbackBase
import Testing

@Suite struct `ringback with a passkey` {
    private static let on: JSON = ["passkeys": true]

    @Test func `the passkey verbs add, name, use and remove a passkey`() async throws {
        try await Stage.playProject(Self.on) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            try await stage.ringback(
                "supabase", "passkeys", "app", status: 0, out: "", says: "register-passkey app")
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
            try await stage.ringback(
                "supabase", "rename-passkey", "app", String(id), "My key", status: 0, out: "\(id) is My key now.\n")

            try await stage.ringback("logout", "app")
            let login = try await stage.startWithPipe(
                "ringback", ["login", "app", "--method", "passkey", "--credential-fd", "3"])
            let asked = try JSON(parsing: try await login.line("the options").utf8)
            try await stage.answer(with: try key.get(asked).text + "\n")
            let ended = try await login.end().expect(0)
            #expect(ended.lines.last == "Signed in to app as mira@example.org", "\(ended)")

            let list = try await stage.ringback("supabase", "passkeys", "app", status: 0, prints: "My key", String(id))
            #expect(list.out.hasPrefix("NAME"), "\(list)")
            try await stage.ringback(
                "supabase", "remove-passkey", "app", "x", status: 64, says: "See: ringback supabase passkeys app")
            try await stage.ringback("supabase", "remove-passkey", "app", String(id), status: 0, out: "Removed \(id)\n")
            try await stage.ringback(
                "supabase", "remove-passkey", "app", String(id), status: 1, says: "Passkey not found")
        }
    }

    @Test func `passkey verbs name a project without passkeys and a wrong credential`() async throws {
        try await Stage.playProject { stage in
            try await stage.ringback(
                "login", "app", "--method", "passkey", stdin: "{}\n", status: 1, out: "", says: "passkey_disabled")
            try await stage.setProject(["passkeys": true])
            let nothing = try await stage.ringback("login", "app", "--method", "passkey", status: 4)
            #expect(nothing.out.hasPrefix(#"{"challenge":"#), "\(nothing)")
            try await stage.ringback(
                "login", "app", "--method", "passkey", stdin: "hello\n", status: 64, says: "is not a JSON object")
            try await stage.ringback(
                "login", "app", "--method", "passkey", stdin: "{}\n", status: 64, says: "not a credential")
            // Whoever gave up left nothing behind.
            #expect(try await stage.account("app")["flow"] == nil)
            try await stage.ringback("supabase", "register-passkey", "app", stdin: "{}\n", status: 3, out: "")
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
