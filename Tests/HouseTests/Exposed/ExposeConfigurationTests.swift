// Restricted sockets that stand in the configuration, beside those that were made by hand, through the real executables.

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
            let check = try await stage.run(
                "ringback", ["config", "check"], environment: ["RINGBACK_STATE": stage.state])
            #expect(check.status == 78 && check.err.contains("\(stage.configuration):5: expose.ci:"), "\(check)")
            // Another file may be another daemon's.
            let named = try await stage.run(
                "ringback", ["config", "check", "--config", stage.configuration],
                environment: ["RINGBACK_STATE": stage.state])
            #expect(named.status == 0, "\(named)")
            let reload = try await stage.ringback("reload")
            #expect(reload.status == 78 && reload.err.contains("\(stage.configuration):5"), "\(reload)")
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
            let doctor = try await stage.run("ringback", ["doctor", "--json"])
            #expect(doctor.out.contains("ci is not exposed."), "\(doctor)")
            #expect(try await stage.ringback("expose", "revoke", "ci").status == 0)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.api("GET", "/v1/exposed-sockets/ci")["scope"] == nil)
            #expect(try await closed(stage) == [])
        }
    }

    @Test func `is noted where nothing of it would be served`() async throws {
        try await Stage.play(Self.account + Self.table("none", "scope = \"calendar\"")) { stage in
            let check = try await stage.ringback("config", "check")
            #expect(check.status == 0 && check.out.contains("none will be served"), "\(check)")
            let made = try await stage.ringback("expose", "more", "--account", "mail", "--scope", "openid calendar")
            #expect(made.status == 0 && made.err.contains("“openid” at most"), "\(made)")
            try await stage.signIn("mail")
            let socket = "\(stage.directory)/run/ringback/exposed/more.sock"
            let token = try await stage.run(
                "ringback", ["token", "mail", "--format", "json"], environment: ["RINGBACK_SOCK": socket])
            #expect(token.status == 0 && token.out.contains("\"scope\":\"openid\""), "\(token)")
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
            let well = try await stage.run("ringback", ["doctor"], environment: there)
            #expect(well.status == 0 && well.out.contains("ci: tokens of work for at most “openid”"), "\(well)")
            #expect(well.out.contains("session work: The account is authenticated."), "\(well)")
            for word in ["pid", "home", "configuration:", "unit", "browser:", "discovery"] {
                #expect(!well.out.contains(word), "\(word): \(well)")
            }
            let json = try await stage.run("ringback", ["doctor", "--json"], environment: there)
            let checks = try JSON(parsing: json.out.utf8)["checks"]?.array ?? []
            #expect(
                checks.compactMap { $0["check"]?.string } == ["socket", "version", "session", "elsewhere"], "\(json)")
            #expect(try await stage.run("ringback", ["doctor", "work"], environment: there).status == 0)
            let other = try await stage.run("ringback", ["doctor", "home"], environment: there)
            #expect(other.status == 4 && other.err.contains("does not show home"), "\(other)")
            let status = try await stage.run("ringback", ["status"], environment: there)
            #expect(status.status == 0 && !status.out.contains("pid"), "\(status)")
        }
    }

    @Test func `what cannot be done there is said to be for the daemon's machine`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.ringback("expose", "ci", "--account", "work")
            let socket = "\(stage.directory)/run/ringback/exposed/ci.sock"
            let token = try await stage.run("ringback", ["token", "work"], environment: ["RINGBACK_SOCK": socket])
            #expect(token.status == 3 && !token.err.contains("Run: "), "\(token)")
            #expect(token.err.contains("On the machine that runs the daemon: ringback login work"), "\(token)")
            let doctor = try await stage.run("ringback", ["doctor"], environment: ["RINGBACK_SOCK": socket])
            #expect(doctor.status == 0 && doctor.out.contains("1 warning."), "\(doctor)")
            #expect(doctor.out.contains("On the machine that runs the daemon: ringback login work"), "\(doctor)")
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
