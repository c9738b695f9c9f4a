import Testing

extension Stage {
    /// What the pages call the provider. The stage's sandbox is put in its place, and nothing else is changed.
    private static let providersOfThePages = ["https://id.example.org/realms/main", "http://127.0.0.1:8123"]

    /// A stage as the pages find it: a daemon in the usual places, no account yet.
    static func playReader(_ test: (Stage) async throws -> Void) async throws {
        let sandbox = ["--user", "alice", "--auto-approve", "alice", "--client", "ringback"]
        try await play("", sandboxArguments: sandbox, startsDaemon: false) { stage in
            try await stage.startDaemon(["--socket", "\(stage.directory)/run/ringback/ringback.sock"])
            try await test(stage)
        }
    }

    /// What the reader's shell has beyond the stage's environment.
    var readersEnvironment: [String: String] {
        // The sandbox signs alice in without asking: a browser that follows redirects is enough.
        Browser.environment.merging(["PATH": "\(Programs.directory):/usr/bin:/bin", "RINGBACK_SOCK": ""]) { $1 }
    }

    /// Runs a block as a script: every line must succeed, and what its comments `# prints: …` say must be printed.
    func type(_ block: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let script = Stage.providersOfThePages.reduce(block) { $0.replacing($1, with: sandbox.origin) }
        let ended = try await run(
            "/bin/sh", ["-c", "set -e\n\(script)"], environment: readersEnvironment,
            within: Bound.seconds(300))
        #expect(ended.status == 0, "\(script)\n\(ended)", sourceLocation: sourceLocation)
        let mark = "# prints: "
        for line in script.split(separator: "\n") where line.hasPrefix(mark) {
            let expected = String(line.dropFirst(mark.count))
            #expect(
                ended.out.contains(expected) || ended.err.contains(expected), "“\(expected)” of\n\(script)\n\(ended)",
                sourceLocation: sourceLocation)
        }
    }
}
