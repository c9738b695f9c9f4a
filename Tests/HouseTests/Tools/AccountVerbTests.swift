import Foundation
import RingbackBase
import Testing

@Suite struct `ringback account edit and remove` {
    private static let account = """
        [accounts."%"]
        issuer = "https://id.example.org/realms/main"
        client_id = "ringback"
        """

    private static func run(_ stage: Stage, _ words: String) async throws -> Output {
        try await stage.run(
            "ringback", words.split(separator: " ").map(String.init), environment: stage.readersEnvironment)
    }

    @Test func `an account that was added is replaced, and removed with its session`() async throws {
        try await Stage.playReader { stage in
            let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
            #expect(try await Self.run(stage, add).status == 0)
            #expect(try await Self.run(stage, "login work").status == 0)

            try await Self.run(stage, add).expect(1, says: "--replace")
            try await Self.run(stage, add + " --replace").expect(0)
            #expect(try await Self.run(stage, "token work").status == 0)

            try await Self.run(stage, "account remove work").expect(4, says: "--yes")
            #expect(try await Self.run(stage, "token work").status == 0)

            try await Self.run(stage, "account remove work --yes").expect(0)
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
            try await Self.run(stage, "account remove work --yes --keep-session").expect(0)
            #expect(try await Self.run(stage, add).status == 0)
            try await Self.run(stage, "token work").expect(0)
        }
    }

    @Test func `an account of another file is not removed, and the message names the file`() async throws {
        let text = Self.account.replacing("%", with: "work")
        try await Stage.play(text) { stage in
            try await stage.ringback(
                "account", "remove", "work", "--yes", status: 1, says: "config.toml", "ringback account edit work")
            #expect(try await stage.ringback("accounts").out.contains("work"))
        }
    }

    @Test func `an edit counts only when it has no mistake`() async throws {
        let text = Self.account.replacing("%", with: "work")
        try await Stage.play(text) { stage in
            try stage.write(
                "#!/bin/sh\nsed -i 's/client_id/client_ids/' \"$1\"\n", to: "\(stage.directory)/bin/spoil", mode: 0o755)
            try await stage.ringback(
                "account", "edit", "work", environment: ["EDITOR": "spoil"], status: 78, says: "did you mean client_id",
                "Run: ringback account edit work")
            try await stage.ringback("config", "check", status: 0)

            try stage.write(
                "#!/bin/sh\nsed -i 's/\"ringback\"/\"other\"/' \"$1\"\n", to: "\(stage.directory)/bin/mend", mode: 0o755
            )
            try await stage.ringback(
                "account", "edit", "work", environment: ["EDITOR": "mend"], status: 0, prints: "Changed ")
            let left = try FileManager.default.contentsOfDirectory(atPath: "\(stage.directory)/config").filter {
                $0.hasPrefix(".")
            }
            #expect(left.isEmpty)
        }
    }

    private static func leaveSession(_ stage: Stage) async throws {
        let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
        #expect(try await run(stage, add).status == 0)
        #expect(try await run(stage, "login work").status == 0)
        try await run(stage, "account remove work --yes --keep-session").expect(0, says: "ringback account remove work")
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

            try await Self.run(stage, "account remove work").expect(4, says: "--yes")
            let before = try await Self.revocations(stage)
            try await Self.run(stage, "account remove work --yes").expect(0, says: "has revoked the session")
            #expect(try await Self.revocations(stage) > before)
            #expect(!(try await Self.run(stage, "status").out.contains("Sealed")))
            try await Self.run(stage, "account remove work --yes").expect(64, says: "no session of it in the vault")
        }
    }

    @Test func `a session of an account that is gone is signed out of by its name`() async throws {
        try await Stage.playReader { stage in
            try await Self.leaveSession(stage)
            try await Self.run(stage, "logout work").expect(0, prints: "Removed the session of alice@example.org")
            try await Self.run(stage, "logout work").expect(64, says: "There is no account “work”")
        }
    }

    @Test func `a provider that is away is told of the end of such a session later, or not at all`() async throws {
        try await Stage.playReader { stage in
            try await Self.leaveSession(stage)
            try await stage.sandbox.control(["faults": [["endpoint": "revocation", "kind": "status", "status": 503]]])
            try await Self.run(stage, "account remove work --yes").expect(5, says: "--no-revoke")
            let document = try JSON(parsing: (await Self.run(stage, "status --json")).out.utf8)
            #expect(document["sealed_sessions"]?.array?.first?["signed_out"] == true, "\(document)")
            try await Self.run(stage, "account remove work --yes --no-revoke").expect(
                0, says: "was not asked to revoke the session")
            #expect(!(try await Self.run(stage, "status").out.contains("Sealed")))
        }
    }

    @Test func `the session of another provider under the same name is removed, the held one is kept`() async throws {
        try await Stage.playSignedIn { stage in
            try stage.write(configuration: Stage.twoAccounts.replacing("{sandbox}\"", with: "{sandbox}/tenant-b\""))
            try await stage.ringback("reload", status: 0)
            try await stage.signIn()
            let status = try await stage.ringback("status")
            #expect(status.out.contains("ringback logout work --sealed"), "\(status)")
            try await stage.ringback("logout", "work", "--sealed", status: 0, says: "has revoked the session")
            #expect(try await stage.token() != nil)
            #expect(!(try await stage.ringback("status")).out.contains("Sealed"))
        }
    }

    @Test func `no session of an account that is gone is removed through a restricted socket`() async throws {
        try await Stage.playSignedIn { stage in
            let exposed = try await stage.ringback("expose", "guest", "--account", "work", "--json")
            let socket = try #require(try exposed.json["socket"]?.string, "\(exposed)")
            try await stage.ringback("logout", "work", "--sealed", "--socket", socket, status: 4)
            let status = try await stage.ringback("status", "--json", "--socket", socket)
            #expect(!status.out.contains("sealed_sessions"), "\(status)")
        }
    }
}
