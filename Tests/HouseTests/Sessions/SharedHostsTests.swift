import RingbackBase
import Testing

/// Two daemons of one person, as on two machines, with one real database.
@Suite(.enabled(if: HouseDatabase.isPossible, "needs PostgreSQL: Scripts/needs rows"), .timeLimit(.minutes(5)))
struct `A vault that two hosts share` {
    private static func configuration(_ store: String) -> String {
        "[vault]\nkey_source = \"key-file\"\nstore = \"\(store)\"\n\n"
            + "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\nscopes = [\"openid\", \"offline_access\"]\n"
    }

    private struct Machine {
        let stage: Stage
        let directory: String
        let program: Program

        var environment: [String: String] {
            [
                "HOME": directory, "XDG_CONFIG_HOME": "\(directory)/.config", "XDG_STATE_HOME": "\(directory)/.state",
                "XDG_RUNTIME_DIR": directory, "RINGBACK_SOCK": "\(directory)/s",
                "RINGBACK_CONFIG": "\(directory)/c.toml",
            ]
        }

        init(_ stage: Stage, store: String) async throws {
            self.stage = stage
            let directory = "\(stage.directory)/two"
            self.directory = directory
            _ = try await stage.run("/bin/mkdir", ["-m", "700", directory])
            let text = `A vault that two hosts share`.configuration(store)
            try stage.write(text.replacing("{sandbox}", with: stage.sandbox.origin), to: "\(directory)/c.toml")
            program = try stage.start(
                "ringbackd",
                ["--config", "\(directory)/c.toml", "--socket", "\(directory)/s", "--state", "\(directory)/state"],
                environment: ["HOME": directory, "XDG_RUNTIME_DIR": directory])
            try await stage.eventually("the second daemon") {
                try await stage.ringback("status", "--socket", "\(directory)/s").status == 0
            }
        }

        func ringback(_ arguments: String..., stdin: String = "") async throws -> Output {
            try await stage.run("ringback", arguments, stdin: stdin, environment: environment)
        }
    }

    private func json(_ output: Output) throws -> JSON {
        #expect(output.status == 0, "\(output)")
        return try JSON(parsing: Array(output.out.utf8))
    }

    private func text(_ json: JSON, _ member: String) throws -> String { try #require(json[member]?.string) }

    @Test func `a second host joins a shared vault by invitation and code, and is removed`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let database = try await HouseDatabase(stage)
            let made = try json(
                try await stage.ringback("vault", "init", database.url, "--owner", "ada", "--json"))
            try stage.write(configuration: Self.configuration(try text(made, "store")))
            try await stage.startDaemon()

            let before = try await stage.ringback("status")
            #expect(before.out.contains("ringback vault join"), "\(before)")
            let none = try await stage.ringback("vault", "join", stdin: "")
            #expect(none.status != 0 && none.err.contains("password"), "\(none)")
            let wrong = try await stage.ringback("vault", "join", stdin: "wrong\n")
            #expect(wrong.status != 0 && wrong.out.isEmpty, "\(wrong)")
            try await stage.ringback(
                "vault", "join", "--name", "laptop", stdin: try text(made, "password") + "\n", status: 0,
                prints: "The vault is open.")
            try await stage.ringback("vault", "join", status: 0)
            try await stage.signIn()
            let token = try #require(try await stage.token())

            let invitation = try json(try await stage.ringback("vault", "invite", "--json"))
            let two = try await Machine(stage, store: try text(invitation, "store"))
            let password = try text(invitation, "password")
            let joined = try json(
                try await two.ringback(
                    "vault", "join", "--name", "desktop", "--no-wait", "--json", stdin: password + "\n"))
            let code = try text(joined, "code")
            try await two.ringback("vault", "join", "--no-wait").expect(0, out: "\(code)\n")
            #expect(try await two.ringback("token", "work").status != 0)

            let argument = try await stage.ringback("vault", "share", code, stdin: code + "\n", status: 64, out: "")
            #expect(!argument.err.contains(code), "\(argument)")
            let guess = "00000-00000-00000-00000\n"
            let other = try await stage.ringback("vault", "share", stdin: guess)
            #expect(other.status != 0 && other.err.contains("ringback vault join"), "\(other)")
            let repeated = try await stage.ringback("vault", "share", stdin: guess)
            #expect(repeated.status != 0 && repeated.err.contains("failed before"), "\(repeated)")
            let waiting = try stage.start("ringback", ["vault", "join"], environment: two.environment)
            try await stage.ringback(
                "vault", "share", stdin: code.lowercased() + "\n", status: 0, out: "desktop has got the key.\n")
            let opened = try await waiting.end().expect(0)
            #expect(opened.out.hasSuffix("The vault is open.\n"), "\(opened)")
            try await stage.eventually("the session on the second host") {
                try await two.ringback("token", "work").out == token + "\n"
            }
            let hosts = try await two.ringback("vault", "hosts")
            #expect(hosts.out.contains("laptop") && hosts.out.contains("desktop (this one)"), "\(hosts)")

            let own = try await stage.ringback("vault", "remove-host", "laptop")
            #expect(own.status != 0, "\(own)")
            try await stage.ringback("vault", "remove-host", "desktop", status: 0, prints: "Sessions refreshed: 1.")
            #expect(try await stage.token() != token)
            #expect(try await two.ringback("vault", "hosts").status != 0)

            // What was done is in the log, without what is secret.
            let audit = try await stage.ringback("audit", "--all")
            #expect(audit.lines.count { $0.contains("vault_joined") } == 1, "\(audit)")
            for event in ["vault_joined", "host_invited", "key_shared", "host_removed"] {
                #expect(audit.out.contains(event), "\(event)")
            }
            #expect(!audit.out.contains(password) && !audit.out.contains(code))
            // After a restart the record has the password.
            #expect(try await stage.stopDaemon().status == 0)
            try await stage.startDaemon()
            try await stage.ringback("vault", "hosts", status: 0)
        }
    }
}
