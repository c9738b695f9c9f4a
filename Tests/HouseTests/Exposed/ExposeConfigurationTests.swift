import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `An account that the configuration exposes` {
    private static let account = """
        [accounts.mail]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        """

    private static func table(_ name: String, _ lines: String...) -> String {
        (["[[expose]]", "name = \"\(name)\"", "account = \"mail\""] + lines).joined(separator: "\n") + "\n"
    }

    private func sockets(_ stage: Stage) -> [String] {
        FileTree.names(in: "\(stage.directory)/run/ringback/exposed").sorted()
    }

    private func restart(_ stage: Stage) async throws {
        try await stage.stopDaemon()
        try await stage.startDaemon()
    }

    private func closed(_ stage: Stage) async throws -> [String] {
        let list = try await stage.api("GET", "/v1/exposed-sockets")["closed"]?.array ?? []
        return list.map { "\($0["name"]?.string ?? "") \($0["reason"]?.string ?? "")" }
    }

    @Test func `does not take the place of one that was made by hand`() async throws {
        try await Stage.play(Self.account) { stage in
            try await stage.signIn("mail")
            try await stage.ringback("expose", "ci", "--account", "mail", "--scope", "openid")
            let open = try Connection(to: .unix("\(stage.directory)/run/ringback/exposed/ci.sock"))
            try stage.write(configuration: Self.account + Self.table("ci") + Self.table("other"))
            try await stage.ringback(
                "config", "check", environment: ["RINGBACK_STATE": stage.state], status: 78,
                says: "\(stage.configuration):5: expose.ci:")
            // Another file may be another daemon's.
            try await stage.ringback(
                "config", "check", "--config", stage.configuration, environment: ["RINGBACK_STATE": stage.state],
                status: 0)
            try await stage.ringback("reload", status: 78, says: "\(stage.configuration):5")
            #expect(sockets(stage) == ["ci.sock"])
            await open.send(Stage.request("GET", "/v1/status"))
            #expect(try await open.answer().status == 200)
            // A start is not kept from it: the table is left out, and that is said.
            try await restart(stage)
            #expect(sockets(stage) == ["ci.sock", "other.sock"])
            #expect(try await stage.api("GET", "/v1/exposed-sockets/ci")["scope"] == "openid")
            #expect(try await closed(stage) == ["ci name_taken"])
            #expect(try await stage.ringback("status").out.contains("Warning"))
            #expect(stage.daemon?.errors.value.text.contains("ci is not exposed.") == true)
            let doctor = try await stage.ringback("doctor", "--json")
            #expect(doctor.out.contains("ci is not exposed."), "\(doctor)")
            try await stage.ringback("expose", "revoke", "ci", status: 0)
            try await stage.ringback("reload", status: 0)
            #expect(try await stage.api("GET", "/v1/exposed-sockets/ci")["scope"] == nil)
            #expect(try await closed(stage) == [])
        }
    }

    @Test func `is noted where nothing of it would be served`() async throws {
        try await Stage.play(Self.account + Self.table("none", "scope = \"calendar\"")) { stage in
            try await stage.ringback("config", "check", status: 0, prints: "none will be served")
            try await stage.ringback(
                "expose", "more", "--account", "mail", "--scope", "openid calendar", status: 0, says: "“openid” at most"
            )
            try await stage.signIn("mail")
            let socket = "\(stage.directory)/run/ringback/exposed/more.sock"
            try await stage.ringback(
                "token", "mail", "--format", "json", environment: ["RINGBACK_SOCK": socket], status: 0,
                prints: "\"scope\":\"openid\"")
        }
    }
}

@Suite struct `Behind a restricted socket` {
    private static let accounts = Stage.twoAccounts

    @Test func `the doctor says what is served, and nothing of the machine that it is asked on`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("work")
            try await stage.ringback("expose", "ci", "--account", "work", "--scope", "openid")
            let socket = "\(stage.directory)/run/ringback/exposed/ci.sock"
            // As at the far end: no configuration, no daemon's files.
            let there = ["RINGBACK_SOCK": socket, "RINGBACK_CONFIG": "/nowhere/config.toml"]
            let well = try await stage.ringback(
                "doctor", environment: there, status: 0, prints: "ci: tokens of work for at most “openid”",
                "session work: The account is signed in.")
            for word in ["pid", "home", "configuration:", "unit", "browser:", "discovery"] {
                #expect(!well.out.contains(word), "\(word): \(well)")
            }
            let json = try await stage.ringback("doctor", "--json", environment: there)
            let checks = try json.json["checks"]?.array ?? []
            #expect(
                checks.compactMap { $0["check"]?.string } == ["socket", "version", "session", "elsewhere"], "\(json)")
            try await stage.ringback("doctor", "work", environment: there, status: 0)
            try await stage.ringback("doctor", "home", environment: there, status: 4, says: "does not show home")
            let status = try await stage.ringback("status", environment: there, status: 0)
            #expect(!status.out.contains("pid"), "\(status)")
        }
    }

    @Test func `what cannot be done there is said to be for the daemon's machine`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.ringback("expose", "ci", "--account", "work")
            let socket = "\(stage.directory)/run/ringback/exposed/ci.sock"
            let token = try await stage.ringback(
                "token", "work", environment: ["RINGBACK_SOCK": socket], status: 3,
                says: "On the machine that runs the daemon: ringback login work")
            #expect(!token.err.contains("Run: "), "\(token)")
            try await stage.ringback(
                "doctor", environment: ["RINGBACK_SOCK": socket], status: 0, prints: "1 warning.",
                "On the machine that runs the daemon: ringback login work")
        }
    }

    @Test func `no operation that the daemon describes is there but six, whatever comes later`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("work")
            try await stage.ringback("expose", "ci", "--account", "work")
            let socket = "\(stage.directory)/run/ringback/exposed/ci.sock"
            let paths = try await stage.api("GET", "/v1/openapi.json")["paths"]?.object?.members ?? []
            #expect(paths.count > 30)
            var served: Set<String> = []
            for entry in paths {
                let names = ["{account}": "work", "{": "", "}": ""]
                let path = names.sorted { $0.key.utf8.count > $1.key.utf8.count }.reduce(entry.name) {
                    $0.replacing($1.key, with: $1.value)
                }
                for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                    let connection = try Connection(to: .unix(socket))
                    await connection.send(Stage.request(method, path))
                    let answer = try await connection.answer()
                    if answer.status != 403 { served.insert("\(method) \(entry.name)") }
                    #expect(answer.status != 403 || answer.code == "policy_denied", "\(method) \(path): \(answer)")
                }
            }
            #expect(
                served == [
                    "GET /v1/status", "GET /v1/accounts", "GET /v1/accounts/{account}",
                    "GET /v1/accounts/{account}/session", "GET /v1/session", "POST /v1/lookup",
                ])
        }
    }
}
