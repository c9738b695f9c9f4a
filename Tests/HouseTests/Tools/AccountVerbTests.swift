import Foundation
import RingbackBase
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
            #expect(spoiled.err.contains("Run: ringback account edit work"), "\(spoiled)")
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

    /// Signs in, and takes the account out of the configuration without a sign-out.
    private static func leaveSession(_ stage: Stage) async throws {
        let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
        #expect(try await run(stage, add).status == 0)
        #expect(try await run(stage, "login work").status == 0)
        let removed = try await run(stage, "account remove work --yes --keep-session")
        #expect(removed.status == 0, "\(removed)")
        #expect(removed.err.contains("ringback account remove work"), "\(removed)")
    }

    private static func revocations(_ stage: Stage) async throws -> Int {
        try await stage.sandbox.counters().requests("revocation")
    }

    @Test func `a session of an account that is gone is shown by status, and removed with revocation`() async throws {
        try await Stage.playReader { stage in
            #expect(!(try await Self.run(stage, "status").out.contains("Sealed")))
            try await Self.leaveSession(stage)
            let status = try await Self.run(stage, "status")
            let line = try #require(status.lines.first { $0.hasPrefix("Sealed") })
            #expect(line.contains("alice@example.org at \(stage.sandbox.origin)"), "\(line)")
            #expect(line.hasSuffix("ringback account remove work"), "\(line)")
            let document = try JSON(parsing: (await Self.run(stage, "status --json")).out.utf8)
            let session = document["sealed_sessions"]?.array?.first
            #expect(session?["account"] == "work" && session?["provider"]?.string == stage.sandbox.origin)
            #expect(session?["revocable"] == true && session?["signed_out"] == false)

            let unsure = try await Self.run(stage, "account remove work")
            #expect(unsure.status == 4 && unsure.err.contains("--yes"), "\(unsure)")
            let before = try await Self.revocations(stage)
            let removed = try await Self.run(stage, "account remove work --yes")
            #expect(removed.status == 0 && removed.err.contains("has revoked the session"), "\(removed)")
            #expect(try await Self.revocations(stage) > before)
            #expect(!(try await Self.run(stage, "status").out.contains("Sealed")))
            let again = try await Self.run(stage, "account remove work --yes")
            #expect(again.status == 64 && again.err.contains("no session of it in the vault"), "\(again)")
        }
    }

    @Test func `a session of an account that is gone is signed out of by its name`() async throws {
        try await Stage.playReader { stage in
            try await Self.leaveSession(stage)
            let removed = try await Self.run(stage, "logout work")
            #expect(
                removed.status == 0 && removed.out.contains("Removed the session of alice@example.org"), "\(removed)")
            let unknown = try await Self.run(stage, "logout work")
            #expect(unknown.status == 64 && unknown.err.contains("There is no account “work”"), "\(unknown)")
        }
    }

    @Test func `a provider that is away is told of the end of such a session later, or not at all`() async throws {
        try await Stage.playReader { stage in
            try await Self.leaveSession(stage)
            try await stage.sandbox.control(["faults": [["endpoint": "revocation", "kind": "status", "status": 503]]])
            let away = try await Self.run(stage, "account remove work --yes")
            #expect(away.status == 5 && away.err.contains("--no-revoke"), "\(away)")
            let document = try JSON(parsing: (await Self.run(stage, "status --json")).out.utf8)
            #expect(document["sealed_sessions"]?.array?.first?["signed_out"] == true, "\(document)")
            let removed = try await Self.run(stage, "account remove work --yes --no-revoke")
            #expect(removed.status == 0 && removed.err.contains("was not asked to revoke the session"), "\(removed)")
            #expect(!(try await Self.run(stage, "status").out.contains("Sealed")))
        }
    }

    @Test func `the session of another provider under the same name is removed without the one that is held`()
        async throws
    {
        try await Stage.play { stage in
            try await stage.signIn()
            try stage.write(configuration: Stage.twoAccounts.replacing("{sandbox}\"", with: "{sandbox}/tenant-b\""))
            #expect(try await stage.ringback("reload").status == 0)
            try await stage.signIn()
            let status = try await stage.ringback("status")
            #expect(status.out.contains("ringback logout work --sealed"), "\(status)")
            let removed = try await stage.ringback("logout", "work", "--sealed")
            #expect(removed.status == 0 && removed.err.contains("has revoked the session"), "\(removed)")
            #expect(try await stage.token() != nil)
            #expect(!(try await stage.ringback("status")).out.contains("Sealed"))
        }
    }

    @Test func `no session of an account that is gone is removed through a restricted socket`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let exposed = try await stage.ringback("expose", "guest", "--account", "work", "--json")
            let socket = try #require(try JSON(parsing: exposed.out.utf8)["socket"]?.string, "\(exposed)")
            let removed = try await stage.run("ringback", ["logout", "work", "--sealed", "--socket", socket])
            #expect(removed.status == 4, "\(removed)")
            let status = try await stage.run("ringback", ["status", "--json", "--socket", socket])
            #expect(!status.out.contains("sealed_sessions"), "\(status)")
        }
    }
}
