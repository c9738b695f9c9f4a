import RingbackBase
import Testing

@Suite struct `The client of an account that is added on a terminal` {
    private func begin(_ stage: Stage, _ options: [String] = []) throws -> TerminalProgram {
        let environment = stage.environment.merging(Browser.environment) { $1 }
        return try TerminalProgram(["account", "add"] + options, environment: environment)
    }

    @Test func `asks again for a URL and a client that the provider does not know`() async throws {
        try await Stage.play("") { stage in
            let add = try begin(stage)
            try await add.answer([("an OpenID Connect provider: ", "http://127.0.0.1:1"), ("A name", "work")])
            try await add.shows("127.0.0.1:1 cannot be reached: the connection was refused")
            try await add.answer([("The provider's URL (the issuer) [http://127.0.0.1:1]: ", stage.sandbox.origin)])
            try await add.shows("The provider responds.")
            try await add.answer([("Number [1]: ", "3"), ("Number [1]: ", "2")])
            try await add.shows("http://127.0.0.1:{port}/callback/work")
            try await add.shows("({port} stands for any port.")
            try await add.answer(
                [
                    ("Client ID: ", "mistyped"),
                    ("Client secret (it is not shown; empty if there is none): ", ""),
                    ("Scopes, separated by spaces [openid email offline_access]: ", "openid"),
                ])
            try await add.shows("rejects this client")
            // What was right is not asked again.
            try await add.answer(
                [("Client ID [mistyped]: ", "ringback-demo"), ("Client secret", ""), ("Sign in when", "n")])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Then run: ringback login work"), "\(ended)")
            #expect(ended.text.split(separator: "/callback/work").count == 2, "\(ended)")
            #expect(ended.text.split(separator: "Scopes, ").count == 2, "\(ended)")
            let text = FileTree.text(of: "\(stage.dropIns)/work.toml") ?? ""
            #expect(text.contains("client_id = \"ringback-demo\"\nscopes = [\"openid\"]\n"), "\(text)")
            // The client was checked twice.
            #expect(try await stage.sandbox.counters().requests("discovery") == 1)
        }
    }

    @Test func `asks only for the key again if a project does not accept it`() async throws {
        try await Stage.playProject(configuration: "") { stage in
            let add = try begin(stage)
            try await add.answer(
                [
                    ("an OpenID Connect provider: ", "5"), ("The project's URL", "\(stage.sandbox.origin)/supabase"),
                    ("API gateway? [y/N] ", ""), ("Publishable key: ", "sb_publishable_mistyped"),
                    ("A name for the account [app]: ", ""),
                ])
            try await add.shows("does not accept the api_key (HTTP 401)")
            try await add.answer([("Publishable key: ", "sb_publishable_sandbox"), ("Sign in", "n")])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Added the account app"), "\(ended)")
            for once in ["The project's URL", "API gateway?", "A name for the account"] {
                #expect(ended.text.split(separator: once).count == 2, "\(once): \(ended)")
            }
        }
    }

    @Test func `offers first that the provider registers the client, where it does that`() async throws {
        try await Stage.play("", sandboxArguments: ["--user", "alice", "--auto-approve", "alice"]) { stage in
            let add = try begin(stage)
            try await add.answer(
                [
                    ("an OpenID Connect provider: ", stage.sandbox.origin), ("A name", "work"),
                ])
            try await add.shows("  1  a new one, which it registers for this account")
            try await add.answer([("Number [1]: ", ""), ("Sign in when", "y")])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Registered the client "), "\(ended)")
            #expect(ended.text.contains("Signed in to work as alice@example.org"), "\(ended)")
            #expect(!ended.text.contains("Client ID") && !ended.text.contains("Register a native app"), "\(ended)")
            #expect(try await stage.sandbox.counters()["registrations"] == 1)

            // Without such an endpoint there is nothing to choose.
            try await stage.sandbox.control(["registration": "off"])
            let other = try begin(stage, ["home", "--issuer", stage.sandbox.origin])
            try await other.shows("The provider responds.")
            try await other.shows("Client ID: ")
            #expect(!other.text.contains("registers clients"), "\(other.text)")
            other.press([0x04])
            #expect(try await other.end().status == 4)
        }
    }
}
