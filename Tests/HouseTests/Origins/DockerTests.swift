// `ringback docker-credential`, by hand and as skopeo's credential helper.

import RingbackBase
import Testing

@Suite struct `docker` {
    static let hasSkopeo = areInstalled("skopeo", "openssl")

    private static let origins = """
        [[origin]]
        url = "https://registry.example.org/*"
        account = "work"

        [[origin]]
        url = "https://tokens.example.org/*"
        account = "work"
        username = "<token>"

        [[origin]]
        url = "https://named.example.org/*"
        account = "work"
        match_username = "ada"

        [[origin]]
        url = "imaps://mail.example.org/*"
        account = "work"

        """

    @Test func `docker-credential gives the token of the registry's origin only`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            try await stage.signIn()
            let token = try #require(try await stage.token())
            stage.link(ringbackAs: "docker-credential-ringback")
            let helper = "\(stage.directory)/bin/docker-credential-ringback"
            for (server, name) in [
                ("registry.example.org", "oauth2"), ("https://registry.example.org/v2/\n", "oauth2"),
                ("tokens.example.org\n", "<token>"),
            ] {
                let expected: JSON = [
                    "ServerURL": .string(server.filter { $0 != "\n" }), "Username": .string(name),
                    "Secret": .string(token),
                ]
                for (program, arguments) in [("ringback", ["docker-credential", "get"]), (helper, ["get"])] {
                    let answer = try await stage.run(program, arguments, stdin: server)
                    #expect(answer.status == 0 && answer.err.isEmpty, "\(answer)")
                    #expect(try JSON(parsing: answer.out.utf8) == expected, "\(answer)")
                }
            }
            for server in [
                "other.example.org", "registry.example.org:5000", "http://registry.example.org", "named.example.org",
            ] {
                let other = try await stage.run(helper, ["get"], stdin: server)
                #expect(other.status == 1 && other.out == "credentials not found in native keychain\n", "\(other)")
                #expect(other.err.isEmpty, "\(other)")
            }
            for (wrong, words) in [
                ("", "no credentials server URL"), ("registry.example.org\nevil.example.org", "characters"),
                (String(repeating: "a", count: 60_000), "not valid"), ("a@registry.example.org", "not valid"),
            ] {
                let refused = try await stage.run(helper, ["get"], stdin: wrong)
                #expect(refused.status == 1 && refused.out.contains(words), "\(refused.out)")
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "docker" && $0["origin"] == "https://tokens.example.org/*" })
        }
    }

    @Test func `docker-credential stores nothing and lists its origins`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let body = #"{"ServerURL":"registry.example.org","Username":"ada","Secret":"hunter2"}"#
            let stored = try await stage.ringback("docker-credential", "store", stdin: body)
            #expect(stored.status == 1 && stored.out.contains("stores no passwords") && stored.err.isEmpty, "\(stored)")
            #expect(!stored.out.contains("hunter2"))
            let erased = try await stage.ringback("docker-credential", "erase", stdin: "registry.example.org")
            #expect(erased.status == 0 && erased.out.isEmpty && erased.err.isEmpty, "\(erased)")
            let listed = try await stage.ringback("docker-credential", "list")
            #expect(
                listed.status == 0
                    && listed.out
                        == #"{"https://registry.example.org":"oauth2","https://tokens.example.org":"<token>"}"# + "\n",
                "\(listed)")
            let version = try await stage.ringback("docker-credential", "version")
            #expect(
                version.status == 0 && version.out.hasPrefix("docker-credential-ringback (ringback) "), "\(version)")
            let unknown = try await stage.ringback("docker-credential", "delete")
            #expect(unknown.status == 64 && unknown.out.isEmpty, "\(unknown)")
        }
    }

    @Test func `docker-credential prints on standard output why there is no token`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let signedOut = try await stage.ringback("docker-credential", "get", stdin: "registry.example.org")
            #expect(signedOut.status == 1 && signedOut.out.contains("Run: ringback login work"), "\(signedOut)")
            #expect(signedOut.lines.count == 1 && signedOut.err.isEmpty, "\(signedOut)")
            try await stage.stopDaemon()
            let alone = try await stage.ringback("docker-credential", "get", stdin: "registry.example.org")
            #expect(alone.status == 1 && alone.out.contains("Start it"), "\(alone)")
        }
    }

    @Test(.enabled(if: hasSkopeo, "skopeo or openssl is not installed"))
    func `skopeo sends the registry the token from its helper`() async throws {
        try await Stage.play { stage in
            let (server, port) = try await stage.startToolServer()
            stage.link(ringbackAs: "docker-credential-ringback")
            let added = try await stage.ringback(
                "origin", "add", "https://127.0.0.1:\(port)", "--account", "work", "--username", "ada")
            #expect(added.status == 0, "\(added)")
            try stage.write(
                #"{"credHelpers": {"127.0.0.1:\#(port)": "ringback"}}"#, to: "\(stage.directory)/auth.json")
            let arguments = [
                "inspect", "--authfile", "\(stage.directory)/auth.json", "--tls-verify=false", "--raw",
                "docker://127.0.0.1:\(port)/team/app:1",
            ]
            let signedOut = try await stage.run("/usr/bin/skopeo", arguments)
            #expect(signedOut.status != 0 && signedOut.err.contains("ringback login work"), "\(signedOut)")
            try await stage.signIn()
            let inspected = try await stage.run("/usr/bin/skopeo", arguments)
            #expect(inspected.status == 0 && inspected.out.contains("ok"), "\(inspected)")
            let token = try #require(try await stage.token())
            let line = try await server.line("the request with the token") {
                $0.hasPrefix("/v2/team/app/manifests/1 Basic")
            }
            let decoded = try await stage.run("/usr/bin/base64", ["-d"], stdin: String(line.split(separator: " ")[2]))
            #expect(decoded.out == "ada:\(token)", "\(line)")
        }
    }
}
