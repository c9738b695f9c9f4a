import Testing

@Suite struct `A mistyped command` {
    private static let verbs: [(String, String)] = [
        ("logn", "ringback login"), ("logn work", "ringback login work"), ("lgoin work", "ringback login work"),
        ("Login work", "ringback login work"), ("tokne work", "ringback token work"), ("statsu", "ringback status"),
        ("list", "ringback accounts"), ("whoami", "ringback session ACCOUNT"),
        ("switch", "ringback login ACCOUNT --switch"), ("switch work", "ringback login work --switch"),
        ("auth login", "ringback login"), ("auth login work", "ringback login work"),
        ("auth status", "ringback status"), ("auth list", "ringback accounts"), ("auth", "ringback login ACCOUNT"),
        ("account list", "ringback accounts"), ("version", "ringback --version"),
        ("factors app", "ringback supabase factors app"), ("rekey", "ringback vault rekey"),
        ("supabase factor app", "ringback supabase factors app"), ("supabase login app", "ringback login app"),
        ("account lst", "ringback accounts"), ("account lits", "ringback accounts"),
        ("account delete work", "ringback account remove work"), ("account rm", "ringback account remove NAME"),
        ("account rm work", "ringback account remove work"), ("account delet", "ringback account remove NAME"),
        ("account remov work", "ringback account remove work"), ("account addd work", "ringback account add work"),
        ("account login work", "ringback login work"), ("account create work", "ringback account add work"),
        ("flows", "ringback status"), ("config list", "ringback accounts"), ("config lst", "ringback accounts"),
        ("rm work", "ringback account remove work"), ("logn 'my account'", "ringback login 'my account'"),
    ]

    @Test func `leads to the verb that is meant, with status 64`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for (typed, meant) in Self.verbs {
                let output = try await stage.run(
                    "/bin/sh", ["-c", "exec \"$0\" \(typed)", Programs.path("ringback")], status: 64, out: "")
                let line = output.err.split(separator: "\n").first ?? ""
                #expect(line.hasPrefix("ringback: There is no verb “"), "\(typed): \(output)")
                #expect(line.hasSuffix("Did you mean: \(meant)"), "\(typed): \(output)")
            }
        }
    }

    @Test func `that is near nothing names the list of verbs, and prints nothing that a terminal obeys`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let words = [
                "frob", "blah", "foo", "wibble", "quux", "abc", "cat", "make", "pull", "push", "hello", "build",
                "deploy",
                "commit", "zoom", "pay",
            ]
            for (arguments, help) in words.map({ ([$0], "ringback --help") }) + [
                (["account", "frob"], "ringback account --help"), (["config", "pull"], "ringback config --help"),
                (["xyzzyx"], "ringback --help"), (["supabase", "xyzzyx"], "ringback supabase --help"),
                (["x\u{1B}[2J\u{202E}"], "ringback --help"), ([""], "ringback --help"),
            ] {
                let output = try await stage.run("ringback", arguments, status: 64, out: "")
                #expect(output.err.hasSuffix("run: \(help)\n") && !output.err.contains("Did you mean"), "\(output)")
                #expect(!output.err.contains("\u{1B}") && !output.err.contains("\u{202E}"), "\(output)")
            }
        }
    }

    private static let options: [([String], String, Int32)] = [
        (["login", "work", "--browser"], "It is the default; --no-browser turns it off", 64),
        (["login", "work", "--no-switch"], "leave --switch out", 64),
        (["login", "work", "--provider", "google"], "Did you mean '--with'?", 64),
        (["login", "work", "--headless"], "Did you mean '--no-browser'?", 64),
        (["login", "work", "--timout", "9"], "Did you mean '--timeout'?", 64),
        (["--json", "status"], "before the verb: options follow “status”", 64),
        (["login", "work", "--unheard-of"], "Unknown option '--unheard-of'", 64),
    ]

    @Test func `with an unknown option names the one that is meant, never its opposite`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for (arguments, text, status) in Self.options {
                let output = try await stage.run(
                    "ringback", arguments, status: status, out: "", says: text, "Usage: ringback")
                #expect(!output.err.contains("mean '--no-browser'?") || arguments.contains("--headless"), "\(output)")
            }
        }
    }

    @Test func `is no mistake where it asks for help or for the version`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for arguments in [[], ["--help"], ["help"], ["help", "login"], ["login", "--help"], ["--version"]] {
                let output = try await stage.run("ringback", arguments, status: 0)
                #expect(output.err.isEmpty && !output.out.isEmpty, "\(arguments): \(output)")
            }
            // Without its own verb, `expose` makes a socket: the word is an account.
            let expose = try await stage.ringback("expose", "work")
            #expect(!expose.err.contains("There is no verb"), "\(expose)")
        }
    }
}
