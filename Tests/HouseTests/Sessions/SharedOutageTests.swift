import Glibc
import RingbackBase
import Testing

/// A daemon whose vault is in a real database that goes away and comes back.
@Suite(.enabled(if: HouseDatabase.isPossible, "needs PostgreSQL: Scripts/needs rows"), .timeLimit(.minutes(5)))
struct `An outage of a shared vault's database` {
    private static let origin = """

        [[origin]]
        url = "https://git.example.org/*"
        account = "work"

        """

    @Test func `an outage of the shared vault's database is reported once and ends by itself`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let database = try await HouseDatabase(stage)
            try await stage.joinVault(at: database, adding: Self.origin)
            try await stage.signInExpired()
            let events = try await stage.listen(to: "/v1/events")
            let shown = try stage.start("ringback", ["events"])
            _ = try await shown.line("the first event") { $0.contains("initial_session") }
            try await database.goAway()

            // The connection for changes is lost, though nobody asks for anything.
            let away = try await events.next("database_away")
            #expect(away["reason"]?.string?.isEmpty == false && away["account"] == nil, "\(away)")
            _ = try await shown.line("the outage") { $0.contains("database_away  ") }
            #expect(try await stage.api("GET", "/v1/status")["vault"]?["database"]?["problem"] != nil)

            let answer = try await stage.api("GET", "/v1/accounts/work/session", status: 503, code: "vault_unreachable")
            #expect(answer["recovery"] == "retry", "\(answer)")
            let token = try await stage.ringback("token", "work", status: 5, out: "", says: "ringback vault status")
            #expect(!token.err.contains("ringback login"), "\(token)")
            // A tool is told the same, and asks nobody for a password.
            stage.link(ringbackAs: "git-credential-ringback")
            let git = try await stage.run(
                "\(stage.directory)/bin/git-credential-ringback", ["get"],
                stdin: "protocol=https\nhost=git.example.org\n\n", status: 5, out: "quit=1\n",
                says: "The vault's database")
            #expect(!git.err.contains("login"), "\(git)")

            database.comeBack()
            try await stage.eventually("a token", within: Bound.seconds(60)) {
                try await stage.ringback("token", "work").status == 0
            }
            // One event for the whole outage.
            let back = try await events.upTo("database_returned")
            #expect(!back.contains { $0["event"] == "database_away" }, "\(back)")
            #expect(back.last?["data"]?["seconds"]?.integer != nil)
            let audit = try await stage.ringback("audit", "--all", "--json")
            #expect(audit.lines.count { $0.contains("\"database_away\"") } == 1, "\(audit)")
        }
    }
}

@Suite(.enabled(if: HouseDatabase.isPossible, "needs PostgreSQL: Scripts/needs rows"), .timeLimit(.minutes(5)))
struct `A host that is removed from a shared vault` {
    @Test func `sessions are refreshed after a host's removal, also if the daemon was killed meanwhile`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let database = try await HouseDatabase(stage)
            try await stage.joinVault(at: database)
            try await stage.signIn()
            let token = try #require(try await stage.token())
            let invited = try await stage.ringback("vault", "invite", "--json")
            let role = try #require(try JSON(parsing: Array(invited.out.utf8))["role"]?.string)

            try await stage.sandbox.control(["faults": [["endpoint": "token", "kind": "status", "status": 429]]])
            try await stage.ringback("vault", "remove-host", role, status: 1, says: "work was not refreshed")
            let hosts = try await stage.ringback("vault", "hosts")
            #expect(!hosts.out.contains(role) && hosts.err.contains("work was not refreshed"), "\(hosts)")
            #expect(try await stage.token() == token)
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            try await stage.sandbox.control(["clear": true])
            try await stage.startDaemon()
            try await stage.eventually("another token", within: Bound.seconds(120)) {
                try await stage.token() != token
            }
            let after = try await stage.ringback("vault", "hosts", status: 0)
            #expect(after.err.isEmpty, "\(after)")
        }
    }
}

extension Stage {
    /// Starts the daemon as the first host of a vault in the database, with the account `work`.
    func joinVault(at database: HouseDatabase, adding more: String = "") async throws {
        let made = try await ringback("vault", "init", database.url, "--owner", "ada", "--json")
        #expect(made.status == 0, "\(made)")
        let facts = try JSON(parsing: Array(made.out.utf8))
        let (store, password) = (try #require(facts["store"]?.string), try #require(facts["password"]?.string))
        try write(
            configuration: "[vault]\nkey_source = \"key-file\"\nstore = \"\(store)\"\n\n[accounts.work]\n"
                + "issuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\nscopes = [\"openid\", \"offline_access\"]\n"
                + more)
        try await startDaemon()
        let joined = try await ringback("vault", "join", "--name", "laptop", stdin: password + "\n")
        #expect(joined.status == 0, "\(joined)")
    }
}
