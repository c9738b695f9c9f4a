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
            let good = try await stage.ringback("config", "check")
            #expect(good.status == 0 && good.err.isEmpty, "\(good)")
            #expect(good.out.contains("work: oidc, redirect URI to register: http://127.0.0.1:{port}/callback/work"))
            let json = try JSON(parsing: await stage.ringback("config", "check", "--json").out.utf8)
            #expect(json["valid"]?.bool == true && json["accounts"]?.array?.count == 2)

            try stage.write(configuration: mistaken)
            let bad = try await stage.ringback("config", "check")
            #expect(bad.status == 78 && bad.out.isEmpty, "\(bad)")
            #expect(bad.err.contains("\(stage.configuration):2"), "\(bad)")
            #expect(bad.err.contains("isuer") && bad.err.contains("issuer"))
            let report = try JSON(parsing: await stage.ringback("config", "check", "--json").out.utf8)
            #expect(report["valid"]?.bool == false)
            #expect(report["errors"]?.array?.first?["line"]?.integer == 2)

            let missing = try await stage.ringback("config", "check", "--config", "\(stage.directory)/none.toml")
            #expect(missing.status == 78 && missing.err.contains("none.toml"), "\(missing)")
        }
    }

    @Test func `a daemon does not start with mistakes`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write(configuration: mistaken)
            let daemon = try await stage.run("ringbackd", ["--state", stage.state])
            #expect(daemon.status == 78 && daemon.err.contains("\(stage.configuration):2"), "\(daemon)")
            let missing = try await stage.run("ringbackd", ["--config", "\(stage.directory)/none.toml"])
            #expect(missing.status == 78, "\(missing)")
        }
    }

    @Test func `without a file at the default place there are no accounts`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let ended = try await stage.run(
                "ringback", ["config", "check"], environment: ["RINGBACK_CONFIG": ""])
            #expect(ended.status == 0 && ended.out.contains("ringback account add"), "\(ended)")
        }
    }

    @Test func `NAT-05, NAT-37: account add writes a checked drop-in that the daemon reads at once`() async throws {
        try await Stage.play { stage in
            let added = try await stage.ringback(
                "account", "add", "play", "--issuer", stage.sandbox.origin + "/tenant-b", "--client-id",
                "ringback-demo")
            #expect(added.status == 0, "\(added)")
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
            let existing = try await stage.ringback("account", "add", "work", "--issuer", issuer, "--client-id", "x")
            #expect(existing.status == 1 && existing.err.contains("defined already"), "\(existing)")
            let plain = try await stage.ringback(
                "account", "add", "play", "--issuer", "http://id.example.org", "--client-id", "x")
            #expect(plain.status == 64 && plain.err.contains("--issuer: "), "\(plain)")
            let usage: [[String]] = [
                ["play"], ["Play", "--issuer", issuer, "--client-id", "x"], ["play", "--issuer"],
                ["play", "--issuer", issuer, "--provider", "google", "--client-id", "x"],
            ]
            for arguments in usage {
                let output = try await stage.run("ringback", ["account", "add"] + arguments)
                #expect(output.status == 64 && output.out.isEmpty, "\(arguments): \(output)")
            }
            #expect(FileTree.names(in: stage.dropIns) == [])
            let again = ["account", "add", "play", "--issuer", issuer, "--client-id", "ringback-demo"]
            #expect(try await stage.run("ringback", again).status == 0)
            #expect(try await stage.run("ringback", again).status == 1)
        }
    }

    @Test func `account add needs no daemon`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let added = try await stage.ringback(
                "account", "add", "org.example.play", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo",
                "--json")
            #expect(added.status == 0, "\(added)")
            let document = try JSON(parsing: added.out.utf8)
            #expect(document["account"]?.string == "org.example.play")
            #expect(document["redirect_uris"] == ["http://127.0.0.1:{port}/callback/org.example.play"])
            try await stage.startDaemon()
            try await stage.signIn("org.example.play")
        }
    }

    @Test func `reload takes a good file and leaves everything as it was for a bad one`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let token = try await stage.token()
            try stage.write(configuration: Stage.twoAccounts.replacing("accounts.home", with: "accounts.attic"))
            let good = try await stage.ringback("reload")
            #expect(good.status == 0 && !good.out.isEmpty, "\(good)")
            #expect(try await names(stage) == ["attic", "work"])

            try stage.write(configuration: mistaken)
            let bad = try await stage.ringback("reload")
            #expect(bad.status == 78 && bad.out.isEmpty, "\(bad)")
            #expect(bad.err.contains("\(stage.configuration):2: "), "\(bad)")
            let answer = try await stage.api("POST", "/v1/reload")
            #expect(answer.status == 400 && answer.code == "invalid_configuration")
            let mistake = answer["errors"]?.array?.first
            #expect(mistake?["file"]?.string == stage.configuration && mistake?["line"]?.integer == 2)
            #expect(mistake?["key"]?.string?.contains("isuer") == true && mistake?["message"]?.string != nil)
            #expect(try await names(stage) == ["attic", "work"])
            #expect(try await stage.token() == token)
        }
    }

    @Test func `SIGHUP reloads, and a bad file changes nothing`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
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
