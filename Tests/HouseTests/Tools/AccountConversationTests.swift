import Glibc
import RingbackBase
import Testing

@Suite struct `account add on a terminal` {
    private typealias Step = (question: String, answer: String)

    /// The sandbox asks nobody for consent.
    private static let willing = ["--user", "alice", "--auto-approve", "alice"]

    private func begin(_ stage: Stage, _ options: [String] = []) throws -> TerminalProgram {
        let environment = stage.environment.merging(Browser.environment) { $1 }
        return try TerminalProgram(["account", "add"] + options, environment: environment)
    }

    private func answer(_ program: TerminalProgram, _ steps: [Step]) async throws { try await program.answer(steps) }

    @Test func `account add on a terminal leads from the list to a sign-in`() async throws {
        try await Stage.play("", sandboxArguments: Self.willing) { stage in
            let add = try begin(stage)
            try await add.shows("8  the sandbox")
            try await answer(
                add,
                [
                    ("Number, or the URL of an OpenID Connect provider: ", "9"), ("There is no provider “9”", "8"),
                    ("The sandbox's URL [http://127.0.0.1:8123]: ", stage.sandbox.origin),
                    ("A name for the account [play]: ", "Not A Name"), ("A name for the account [play]: ", ""),
                    ("Sign in when the account is added? [Y/n] ", ""),
                ])
            let ended = try await add.end()
            #expect(ended.status == 0, "\(ended)")
            for words in [
                "A name has small letters", "Added the account play", "Signed in to play as alice@example.org",
            ] {
                #expect(ended.text.contains(words), "\(words): \(ended)")
            }
            #expect(!ended.text.contains("Then run: ringback login"), "\(ended)")
            #expect(try await stage.token("play") != nil)
        }
    }

    @Test func `account add at the sandbox names no redirect URI to register`() async throws {
        try await Stage.play("") { stage in
            let add = try begin(stage)
            try await answer(
                add,
                [
                    ("Number, or the URL of an OpenID Connect provider: ", ""), ("An answer is needed here.", "8"),
                    ("The sandbox's URL [http://127.0.0.1:8123]: ", stage.sandbox.origin),
                    ("A name for the account [play]: ", ""), ("Sign in when the account is added? [Y/n] ", "n"),
                ])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Then run: ringback login play"), "\(ended)")
            #expect(!ended.text.contains("Register") && !ended.text.contains("{port}"), "\(ended)")
            #expect(try await stage.sandbox.counters().requests("discovery") == 1)

            let script = try await stage.ringback(
                "account", "add", "work", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", status: 0)
            #expect(!script.out.contains("Register"), "\(script)")
            try await stage.ringback(
                "account", "add", "home", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo",
                "--redirect-uri", "http://localhost:8400/cb", status: 0, prints: "Register at the provider")
        }
    }

    @Test func `account add asks whether a Supabase URL has no gateway`() async throws {
        try await Stage.playProject(["api_keys": []], configuration: "") { stage in
            let add = try begin(stage)
            try await answer(
                add,
                [
                    ("an OpenID Connect provider: ", "5"),
                    ("The project's URL", "\(stage.sandbox.origin)/supabase/auth/v1"),
                    ("Is this a Supabase Auth server without an API gateway? [y/N] ", "y"),
                    ("A name for the account [app]: ", ""), ("Sign in when the account is added? [Y/n] ", "n"),
                ])
            let ended = try await add.end()
            #expect(ended.status == 0 && !ended.text.contains("Publishable key"), "\(ended)")
            let text = FileTree.text(of: "\(stage.dropIns)/app.toml") ?? ""
            #expect(text.contains("gateway = false\n") && !text.contains("api_key"), "\(text)")
        }
    }

    @Test func `account add stores a client secret in a file of mode 0600`() async throws {
        try await Stage.play("", sandboxArguments: Self.willing) { stage in
            try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s3cret"]]])
            let add = try begin(stage, ["work", "--issuer", stage.sandbox.origin, "--scope", "openid", "--login"])
            try await answer(add, [("Number [1]: ", "2"), ("Client ID: ", "ringback-demo")])
            try await add.shows("Client secret (it is not shown; empty if there is none): ")
            add.type("s3cret")
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Signed in to work as "), "\(ended)")
            #expect(!ended.text.contains("s3cret"), "\(ended)")
            var facts = stat()
            #expect(unsafe stat("\(stage.dropIns)/work.toml", &facts) == 0 && facts.st_mode & 0o777 == 0o600)
            #expect(FileTree.text(of: "\(stage.dropIns)/work.toml")?.contains("client_secret = \"s3cret\"") == true)

            // The same without a terminal.
            try await stage.ringback(
                "account", "add", "home", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo",
                "--client-secret-fd", "0", stdin: "s3cret\n", status: 0)
            #expect(FileTree.text(of: "\(stage.dropIns)/home.toml")?.contains("client_secret = \"s3cret\"") == true)
        }
    }

    private static let paths: [[Step]] = [
        [
            ("an OpenID Connect provider: ", "3"), ("A name for the account [github]: ", ""),
            ("Allow that? [y/N] ", "y"), ("Client ID: ", "abc"), ("Client secret", "s3cret"),
            ("Scopes, separated by spaces [repo read:user]: ", ""), ("Sign in when the account is added? [Y/n] ", ""),
        ],
        [("an OpenID Connect provider: ", "microsoft"), ("The directory", "")],
        [
            ("an OpenID Connect provider: ", "5"), ("The project's URL", "https://a.supabase.co"),
            ("Publishable key", ""),
        ],
        [("an OpenID Connect provider: ", "6"), ("The provider's URL (the issuer): ", "")],
        [("an OpenID Connect provider: ", "7"), ("The server's URL, such as https://mcp.example.com/mcp: ", "")],
        [("an OpenID Connect provider: ", "8"), ("The sandbox's URL", "")],
    ]

    @Test func `account add writes nothing if it is ended at a question`() async throws {
        try await Stage.play("# mine\n") { stage in
            for byCtrlC in [true, false] {
                for (number, path) in Self.paths.enumerated() {
                    // The first question is the same on every path.
                    for end in (number == 0 ? 0 : 1)..<path.count {
                        let add = try begin(stage, ["--offline"])
                        try await answer(add, Array(path[..<end]))
                        try await add.shows(path[end].question)
                        if byCtrlC { add.send(SIGINT) } else { add.press([0x04]) }
                        let ended = try await add.end()
                        #expect(ended.status == 4 && ended.text.contains("No account was added."), "\(end): \(ended)")
                        #expect(FileTree.names(in: stage.dropIns) == [], "\(ended)")
                    }
                }
                #expect(FileTree.text(of: stage.configuration) == "# mine\n")
                #expect(try await stage.api("GET", "/v1/accounts")["accounts"]?.array?.isEmpty == true)
            }
        }
    }

    @Test func `account add adds a preset's origins on request`() async throws {
        try await Stage.play("# mine\n") { stage in
            let add = try begin(stage, ["--offline"])
            try await answer(add, Array(Self.paths[0].dropLast()) + [("Sign in when", "n")])
            let ended = try await add.end()
            #expect(ended.status == 0 && !ended.text.contains("which git needs"), "\(ended)")
            let text = FileTree.text(of: "\(stage.dropIns)/github.toml") ?? ""
            #expect(text.contains("scopes = [\"repo\", \"read:user\"]\n"), "\(text)")
            // Once, and as the provider takes it.
            #expect(ended.text.split(separator: "/callback/github").count == 2, "\(ended)")
            #expect(ended.text.contains("  http://127.0.0.1/callback/github"), "\(ended)")
            #expect(!ended.text.contains("{port}"), "\(ended)")
            let listed = try await stage.ringback("origin", "list", "--json")
            let urls = try listed.json["origins"]?.array?.compactMap { $0["url"]?.string }
            #expect(urls == ["https://github.com/*", "https://api.github.com/*"], "\(listed)")

            try await stage.ringback(
                "account", "add", "lab", "--provider", "gitlab", "--client-id", "x", "--offline", "--origins",
                status: 0, says: "read_repository write_repository, which git needs at GitLab")
            #expect(try await stage.ringback("origin", "test", "https://gitlab.com/a/b.git").out.contains("lab"))
            try await stage.ringback(
                "account", "add", "mail", "--provider", "google", "--client-id", "x", "--offline", "--origins",
                status: 64, says: "--origins")
        }
    }

    @Test func `account add takes a host without its scheme and names a wrong issuer`() async throws {
        try await Stage.play("") { stage in
            let add = try begin(stage, ["--offline"])
            try await answer(
                add,
                [
                    ("an OpenID Connect provider: ", "id.example.org"), ("A name", "work"), ("Client ID: ", "c"),
                    ("Client secret", ""), ("Scopes", ""), ("Sign in when", "n"),
                ])
            let ended = try await add.end()
            #expect(ended.status == 0, "\(ended)")
            let text = FileTree.text(of: "\(stage.dropIns)/work.toml") ?? ""
            #expect(text.contains("issuer = \"https://id.example.org\"\n"), "\(text)")

            let wrong = try begin(stage)
            try await answer(wrong, [("an OpenID Connect provider: ", "http://id.example.org"), ("A name", "mail")])
            try await wrong.shows("the issuer is not an https URL")
            try await wrong.shows("The provider's URL (the issuer) [http://id.example.org]: ")
            wrong.press([0x04])
            #expect(try await wrong.end().status == 4)
        }
    }

    @Test func `account add names no redirect URI for Google`() async throws {
        try await Stage.play("") { stage in
            let add = try begin(stage, ["--offline"])
            try await answer(
                add,
                [
                    ("an OpenID Connect provider: ", "google"), ("A name", ""), ("Client ID: ", "c"),
                    ("Client secret, which", ""), ("An answer is needed here.", "s"), ("Scopes", ""),
                    ("Sign in when", "n"),
                ])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("It needs no redirect URI."), "\(ended)")
            #expect(!ended.text.contains("/callback/"), "\(ended)")
            let script = try await stage.ringback(
                "account", "add", "mail", "--provider", "google", "--client-id", "c", "--offline", status: 0,
                says: "Google gives every client a secret", "--client-secret-fd 0")
            #expect(!script.out.contains("/callback/"), "\(script)")
        }
    }

    @Test func `account add asks a service for its client and its secret alone`() async throws {
        try await Stage.play("") { stage in
            let add = try begin(
                stage,
                ["deploy", "--issuer", stage.sandbox.origin, "--grant", "client_credentials", "--scope", "deploy"])
            try await answer(
                add,
                [("Client ID: ", "robot"), ("Client secret, which", ""), ("An answer is needed here.", "robot-hush")])
            let ended = try await add.end()
            #expect(ended.status == 0 && ended.text.contains("Then run: ringback token deploy"), "\(ended)")
            #expect(!ended.text.contains("/callback/") && !ended.text.contains("Sign in when"), "\(ended)")
        }
    }

    @Test func `account add without a terminal lists what is missing`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (words, missing) in [
                ([], ["NAME", "--issuer URL", "--client-id"]), (["work"], ["--issuer URL", "--client-id"]),
                (["--provider", "microsoft"], ["NAME", "--tenant", "--client-id"]),
                (["--provider", "supabase"], ["NAME", "--url", "--api-key"]),
            ] as [([String], [String])] {
                let output = try await stage.run(
                    "ringback", ["account", "add"] + words, stdin: "7\n", status: 64, out: "")
                for word in missing { #expect(output.err.contains(word), "\(word): \(output)") }
                #expect(output.err.contains("NAME;") == missing.contains("NAME"), "\(output)")
            }
        }
    }
}
