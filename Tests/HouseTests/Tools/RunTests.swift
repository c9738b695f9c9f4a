import Testing

/// What `ringback run` refuses before it builds a wall. What the wall holds is tried by `make test-confined`, which needs
/// bubblewrap.
@Suite struct `ringback run` {
    private static let tables = """
        [accounts.linear]
        mcp = "https://mcp.example.org/mcp"

        [run.claude]
        command = ["claude"]

        [run.bare]

        [run.agent]
        command = ["ls"]
        mcp = "linear"
        tool = "list_issues"

        """

    @Test func `takes its options from a table of the configuration, and says what is wrong with it`() async throws {
        try await Stage.play(Self.tables, startsDaemon: false) { stage in
            let unknown = try await stage.ringback("run", "cluade", status: 125, out: "")
            #expect(unknown.err.contains("no table [run.cluade]: did you mean claude?"), "\(unknown)")
            #expect(unknown.err.contains("ringback run -- cluade"), "\(unknown)")
            // The command is the table's, and there is none of this name.
            let missing = try await stage.ringback(
                "run", "claude", environment: ["PATH": "/usr/bin"], status: 127, out: "")
            #expect(missing.err.contains("claude was not found"), "\(missing)")
            // The table's tools are for its own server only.
            let more = try await stage.ringback("run", "agent", "--mcp", "notes", status: 64, out: "")
            #expect(more.err.contains("--tool is ACCOUNT:TOOL"), "\(more)")
            let bare = try await stage.ringback("run", "bare", status: 64, out: "")
            #expect(bare.err.contains("ringback run NAME -- CMD"), "\(bare)")
            try stage.write(configuration: "[run.claude]\nacount = \"work\"\n")
            let mistaken = try await stage.ringback("run", "claude", "--", "true", status: 125, out: "")
            #expect(mistaken.err.contains(":2: run.claude.acount: unknown key; did you mean account?"), "\(mistaken)")
            // Without a name the configuration is not read.
            let other = try await stage.ringback("run", "--", "no-such-command", status: 127, out: "")
            #expect(!other.err.contains("acount"), "\(other)")
        }
    }

    @Test(arguments: [
        ["run"], ["run", "claude", "ls"], ["run", "--scope", "openid", "--", "ls"],
        ["run", "--home", "../x", "--", "ls"],
        ["run", "--network", "none"], ["run", "--env", "A=b", "--", "ls"], ["run", "--tool", "echo", "--", "ls"],
        ["run", "--mcp", "../a", "--", "ls"], ["run", "--mcp", "linear", "--scope", "openid", "--", "ls"],
        ["run", "--mcp", "linear", "--mcp", "notes", "--tool", "echo", "--", "ls"],
        ["run", "--mcp", "linear", "--mcp", "notes", "--tool", "other:echo", "--", "ls"],
    ])
    func `that lacks a command, or has a value that cannot be, is a usage error`(words: [String]) async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let output = try await stage.run("ringback", words, status: 64, out: "")
            #expect(!output.err.isEmpty)
        }
    }
}
