import Glibc
import RingbackBase
import Testing

/// What is left behind when an account is removed, at its provider and here.
@Suite struct `ringback account remove` {
    private static let logout: JSON = ["endpoint": "supabase_logout", "kind": "status", "status": 503]

    /// A person is signed in at a project, by an account that is defined in its own file.
    private static func playProject(_ test: (Stage) async throws -> Void) async throws {
        try await Stage.play("", sandboxArguments: ["--user", "alice"], startsDaemon: false) { stage in
            #expect(unsafe mkdir(stage.dropIns, 0o700) == 0)
            try stage.write(
                Stage.project.replacing("{sandbox}", with: stage.sandbox.origin), to: "\(stage.dropIns)/app.toml")
            try await stage.startDaemon()
            try await stage.signUp()
            try await test(stage)
        }
    }

    private static func logouts(_ stage: Stage) async throws -> Int {
        try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout")
    }

    private static func sealed(_ stage: Stage, _ account: String) -> [String] {
        FileTree.all(in: "\(stage.state)/vault").filter { $0.contains("/\(account)+") }
    }

    @Test func `account remove keeps an account whose sign-out was not delivered`() async throws {
        try await Self.playProject { stage in
            try await stage.switchProject(["faults": [Self.logout]])
            try await stage.ringback(
                "account", "remove", "app", "--yes", status: 5, says: "ringback account remove app --no-revoke")
            #expect(try await stage.ringback("accounts").out.contains("app"))
            try await stage.ringback("token", "app", status: 3)
            let before = try await Self.logouts(stage)
            #expect(before >= 1)
            try await stage.switchProject(["clear": true])
            try await stage.ringback("account", "remove", "app", "--yes", status: 0, prints: "Removed the account app")
            #expect(try await Self.logouts(stage) == before + 1)
            #expect(!(try await stage.ringback("status")).out.contains("Sign-outs"))
            #expect(Self.sealed(stage, "app") == [])
        }
    }

    @Test func `account remove --no-revoke leaves no pending revocation and no sealed file`() async throws {
        try await Self.playProject { stage in
            #expect(Self.sealed(stage, "app").contains { $0.hasSuffix(".people") })
            try await stage.switchProject(["faults": [Self.logout]])
            try await stage.ringback(
                "account", "remove", "app", "--yes", "--no-revoke", status: 0, says: "was not told")
            let status = try await stage.ringback("status")
            #expect(!status.out.contains("Sign-outs") && !status.out.contains("Sealed"), "\(status)")
            #expect(Self.sealed(stage, "app") == [])
        }
    }

    @Test func `account remove revokes the account's restricted sockets`() async throws {
        try await Stage.playReader { stage in
            let environment = stage.readersEnvironment
            func ringback(_ words: String) async throws -> Output {
                try await stage.run("ringback", words.split(separator: " ").map(String.init), environment: environment)
            }
            let add = "account add work --issuer \(stage.sandbox.origin) --client-id ringback"
            #expect(try await ringback(add).status == 0)
            #expect(try await ringback("login work").status == 0)
            let exposed = try await ringback("expose box --account work --json")
            let socket = try #require(try exposed.json["socket"]?.string, "\(exposed)")
            let asked = try TerminalProgram(
                ["account", "remove", "work"], environment: stage.environment.merging(environment) { $1 })
            try await asked.shows("The restricted socket box is revoked.")
            try await asked.shows("Sign out of work and remove the account")
            asked.type("n")
            #expect(try await asked.end().status == 4)
            #expect(try await ringback("expose list").out.contains("box"))
            try await ringback("account remove work --yes").expect(0, prints: "Revoked its restricted socket: box")
            #expect(!(try await ringback("expose list")).out.contains("box"))
            #expect(try await ringback(add).status == 0)
            #expect(try await ringback("login work").status == 0)
            #expect(unsafe access(socket, F_OK) != 0)
            #expect(!(try await ringback("expose list")).out.contains("box"))
        }
    }

    @Test func `account remove deletes the registered client, or keeps the account`() async throws {
        try await Stage.play { stage in
            func registered() -> [String] { Self.sealed(stage, "play").filter { $0.hasSuffix(".registration") } }
            let add = ["account", "add", "play", "--issuer", stage.sandbox.origin, "--register"]
            try await stage.run("ringback", add, status: 0)
            try await stage.signIn("play")
            let deaf: JSON = ["endpoint": "client_configuration", "kind": "status", "status": 503]
            try await stage.sandbox.control(["faults": [deaf]])
            try await stage.ringback("account", "remove", "play", "--yes", status: 5, says: "--keep-registration")
            #expect(registered().count == 1)
            try await stage.sandbox.control(["clear": true])
            try await stage.ringback(
                "account", "remove", "play", "--yes", status: 0, prints: "Deleted its client client-")
            #expect(try await stage.sandbox.counters()["registrations_deleted"] == 1)
            #expect(registered() == [])

            try await stage.run("ringback", add, status: 0)
            try await stage.ringback("account", "remove", "play", "--yes", "--keep-registration", status: 0)
            #expect(try await stage.sandbox.counters()["registrations_deleted"] == 1)
            #expect(registered().count == 1)
        }
    }
}
