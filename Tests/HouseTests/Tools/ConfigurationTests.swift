import Glibc
import RingbackBase
import Testing

@Suite struct `The configuration from outside` {
    private let mistaken = """
        [accounts.work]
        isuer = "https://id.example.org"
        client_id = "ringback-demo"

        """

    @Test func `config check needs no daemon and names file, line, key and the nearest key`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let good = try await stage.ringback(
                "config", "check", status: 0,
                prints: "work: oidc, redirect URI to register: http://127.0.0.1:{port}/callback/work")
            #expect(good.err.isEmpty, "\(good)")
            #expect(good.out.split(separator: "{port} stands for a free port").count == 2, "\(good)")
            let json = try JSON(parsing: await stage.ringback("config", "check", "--json").out.utf8)
            #expect(json["valid"]?.bool == true && json["accounts"]?.array?.count == 2)

            try stage.write(configuration: mistaken)
            try await stage.ringback(
                "config", "check", status: 78, out: "", says: "\(stage.configuration):2", "isuer", "issuer")
            let report = try JSON(parsing: await stage.ringback("config", "check", "--json").out.utf8)
            #expect(report["valid"]?.bool == false)
            #expect(report["errors"]?.array?.first?["line"]?.integer == 2)

            try await stage.ringback(
                "config", "check", "--config", "\(stage.directory)/none.toml", status: 78, says: "none.toml")
        }
    }

    @Test func `a daemon does not start with mistakes`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write(configuration: mistaken)
            try await stage.run("ringbackd", ["--state", stage.state], status: 78, says: "\(stage.configuration):2")
            try await stage.run("ringbackd", ["--config", "\(stage.directory)/none.toml"], status: 78)
        }
    }

    @Test func `without a file at the default place there are no accounts`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await stage.ringback(
                "config", "check", environment: ["RINGBACK_CONFIG": ""], status: 0, prints: "ringback account add")
        }
    }

    @Test func `NAT-05, NAT-37: account add writes a checked drop-in that the daemon reads at once`() async throws {
        try await Stage.play { stage in
            let added = try await stage.ringback(
                "account", "add", "play", "--issuer", stage.sandbox.origin + "/tenant-b", "--client-id",
                "ringback-demo", status: 0)
            // The sandbox knows this client already: nothing is to be registered.
            #expect(!added.out.contains("/callback/play"), "\(added)")
            #expect(FileTree.names(in: stage.dropIns) == ["play.toml"])
            #expect(FileTree.mode(of: "\(stage.dropIns)/play.toml") == 0o600)
            #expect(FileTree.mode(of: stage.dropIns) == 0o700)
            try await stage.signIn("play", as: "carol")
            #expect(try await stage.account("play")["subject"]?.string == "carol")
        }
    }

    @Test func `account add refuses an existing name, and writes nothing that would not work`() async throws {
        try await Stage.play { stage in
            let issuer = stage.sandbox.origin
            try await stage.ringback(
                "account", "add", "work", "--issuer", issuer, "--client-id", "x", status: 1, says: "defined already")
            try await stage.ringback(
                "account", "add", "play", "--issuer", "http://id.example.org", "--client-id", "x", status: 64,
                says: "--issuer: ")
            let usage: [[String]] = [
                ["play"], ["Play", "--issuer", issuer, "--client-id", "x"], ["play", "--issuer"],
                ["play", "--issuer", issuer, "--provider", "google", "--client-id", "x"],
            ]
            for arguments in usage {
                try await stage.run("ringback", ["account", "add"] + arguments, status: 64, out: "")
            }
            #expect(FileTree.names(in: stage.dropIns) == [])
            let again = ["account", "add", "play", "--issuer", issuer, "--client-id", "ringback-demo"]
            try await stage.run("ringback", again, status: 0)
            try await stage.run("ringback", again, status: 1)
        }
    }

    @Test func `account add needs no daemon`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let added = try await stage.ringback(
                "account", "add", "org.example.play", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo",
                "--json", status: 0)
            let document = try added.json
            #expect(document["account"]?.string == "org.example.play")
            #expect(document["redirect_uris"] == ["http://127.0.0.1:{port}/callback/org.example.play"])
            try await stage.startDaemon()
            try await stage.signIn("org.example.play")
        }
    }

    @Test func `reload takes a good file and leaves everything as it was for a bad one`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.token()
            try stage.write(configuration: Stage.twoAccounts.replacing("accounts.home", with: "accounts.attic"))
            let good = try await stage.ringback("reload", status: 0)
            #expect(!good.out.isEmpty, "\(good)")
            #expect(try await names(stage) == ["attic", "work"])

            try stage.write(configuration: mistaken)
            try await stage.ringback("reload", status: 78, out: "", says: "\(stage.configuration):2: ")
            let answer = try await stage.api("POST", "/v1/reload", status: 400, code: "invalid_configuration")
            let mistake = answer["errors"]?.array?.first
            #expect(mistake?["file"]?.string == stage.configuration && mistake?["line"]?.integer == 2)
            #expect(mistake?["key"]?.string?.contains("isuer") == true && mistake?["message"]?.string != nil)
            #expect(try await names(stage) == ["attic", "work"])
            #expect(try await stage.token() == token)
        }
    }

    @Test func `SIGHUP reloads, and a bad file changes nothing`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.token()
            for (text, expected) in [
                (Stage.twoAccounts.replacing("accounts.home", with: "accounts.attic"), ["attic", "work"]),
                (mistaken, ["attic", "work"]), ("", []), (Stage.twoAccounts, ["home", "work"]),
            ] {
                try stage.write(configuration: text)
                let count = stage.notices.count
                stage.daemon?.send(SIGHUP)
                try await stage.notices.wait(for: "READY=1", after: count)
                #expect(try await names(stage) == expected)
            }
            let line = try await stage.daemon?.errorLine("the mistake") { $0.contains("not reloaded") }
            #expect(line?.contains("isuer") == true)
            // The account went and came back, and its session with it.
            #expect(try await stage.token() == token)
        }
    }

    private func names(_ stage: Stage) async throws -> [String] {
        try await stage.api("GET", "/v1/accounts")["accounts"]?.array?.compactMap { $0["name"]?.string } ?? []
    }
}
