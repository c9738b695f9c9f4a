import Foundation
import Testing

@Suite struct `ringback account edit and remove` {
    private static let account = """
        [accounts."%"]
        issuer = "https://id.example.org/realms/main"
        client_id = "ringback"
        """

    /// Runs `ringback` as the reader of the pages does.
    private static func run(_ stage: Stage, _ words: String) async throws -> Output {
        try await stage.run(
            "ringback", words.split(separator: " ").map(String.init), environment: stage.readersEnvironment)
    }

    @Test func `an account that was added is replaced, and removed with its session`() async throws {
        try await Stage.playReader { stage in
            let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
            #expect(try await Self.run(stage, add).status == 0)
            #expect(try await Self.run(stage, "login work").status == 0)

            let again = try await Self.run(stage, add)
            #expect(again.status == 1)
            #expect(again.err.contains("--replace"))
            let replaced = try await Self.run(stage, add + " --replace")
            #expect(replaced.status == 0, "\(replaced)")
            #expect(try await Self.run(stage, "token work").status == 0)

            let unsure = try await Self.run(stage, "account remove work")
            #expect(unsure.status == 4)
            #expect(unsure.err.contains("--yes"))
            #expect(try await Self.run(stage, "token work").status == 0)

            let removed = try await Self.run(stage, "account remove work --yes")
            #expect(removed.status == 0, "\(removed)")
            #expect(!(try await Self.run(stage, "accounts")).out.contains("work"))
            // The session was ended, not only put out of reach: the same account has none when it is back.
            #expect(try await Self.run(stage, add).status == 0)
            #expect(try await Self.run(stage, "token work").status == 3)
        }
    }

    @Test func `a session is kept on request, and is back with the account`() async throws {
        try await Stage.playReader { stage in
            let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
            #expect(try await Self.run(stage, add).status == 0)
            #expect(try await Self.run(stage, "login work").status == 0)
            let removed = try await Self.run(stage, "account remove work --yes --keep-session")
            #expect(removed.status == 0, "\(removed)")
            #expect(try await Self.run(stage, add).status == 0)
            let token = try await Self.run(stage, "token work")
            #expect(token.status == 0, "\(token)")
        }
    }

    @Test func `an account of another file is not removed, and the message names the file`() async throws {
        let text = Self.account.replacing("%", with: "work")
        try await Stage.play(text) { stage in
            let removed = try await stage.ringback("account", "remove", "work", "--yes")
            #expect(removed.status == 1)
            #expect(removed.err.contains("config.toml"))
            #expect(removed.err.contains("ringback account edit work"))
            #expect(try await stage.ringback("accounts").out.contains("work"))
        }
    }

    @Test func `an edit counts only when it has no mistake`() async throws {
        let text = Self.account.replacing("%", with: "work")
        try await Stage.play(text) { stage in
            try stage.write(
                "#!/bin/sh\nsed -i 's/client_id/client_ids/' \"$1\"\n", to: "\(stage.directory)/bin/spoil", mode: 0o755)
            let spoiled = try await stage.run(
                "ringback", ["account", "edit", "work"], environment: ["EDITOR": "spoil"])
            #expect(spoiled.status == 78)
            #expect(spoiled.err.contains("did you mean client_id"))
            #expect(try await stage.ringback("config", "check").status == 0)

            try stage.write(
                "#!/bin/sh\nsed -i 's/\"ringback\"/\"other\"/' \"$1\"\n", to: "\(stage.directory)/bin/mend", mode: 0o755
            )
            let mended = try await stage.run("ringback", ["account", "edit", "work"], environment: ["EDITOR": "mend"])
            #expect(mended.status == 0, "\(mended)")
            #expect(mended.out.contains("Changed "))
            let left = try FileManager.default.contentsOfDirectory(atPath: "\(stage.directory)/config").filter {
                $0.hasPrefix(".")
            }
            #expect(left.isEmpty)
        }
    }
}
