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
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
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
                    let answer = try await stage.run(program, arguments, stdin: server, status: 0)
                    #expect(answer.err.isEmpty, "\(answer)")
                    #expect(try answer.json == expected, "\(answer)")
                }
            }
            for server in [
                "other.example.org", "registry.example.org:5000", "http://registry.example.org", "named.example.org",
            ] {
                let other = try await stage.run(
                    helper, ["get"], stdin: server, status: 1, out: "credentials not found in native keychain\n")
                #expect(other.err.isEmpty, "\(other)")
            }
            for (wrong, words) in [
                ("", "no credentials server URL"), ("registry.example.org\nevil.example.org", "characters"),
                (String(repeating: "a", count: 60_000), "not valid"), ("a@registry.example.org", "not valid"),
            ] {
                try await stage.run(helper, ["get"], stdin: wrong, status: 1, prints: words)
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "docker" && $0["origin"] == "https://tokens.example.org/*" })
        }
    }

    @Test func `docker-credential stores nothing and lists its origins`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let body = #"{"ServerURL":"registry.example.org","Username":"ada","Secret":"hunter2"}"#
            let stored = try await stage.ringback(
                "docker-credential", "store", stdin: body, status: 1, prints: "stores no passwords")
            #expect(stored.err.isEmpty, "\(stored)")
            #expect(!stored.out.contains("hunter2"))
            let erased = try await stage.ringback(
                "docker-credential", "erase", stdin: "registry.example.org", status: 0, out: "")
            #expect(erased.err.isEmpty, "\(erased)")
            try await stage.ringback(
                "docker-credential", "list", status: 0,
                out: #"{"https://registry.example.org":"oauth2","https://tokens.example.org":"<token>"}"# + "\n")
            let version = try await stage.ringback("docker-credential", "version", status: 0)
            #expect(version.out.hasPrefix("docker-credential-ringback (ringback) "), "\(version)")
            try await stage.ringback("docker-credential", "delete", status: 64, out: "")
        }
    }

    @Test func `docker-credential prints on standard output why there is no token`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let signedOut = try await stage.ringback(
                "docker-credential", "get", stdin: "registry.example.org", status: 1, prints: "Run: ringback login work"
            )
            #expect(signedOut.lines.count == 1 && signedOut.err.isEmpty, "\(signedOut)")
            try await stage.stopDaemon()
            try await stage.ringback(
                "docker-credential", "get", stdin: "registry.example.org", status: 1, prints: "Start it")
        }
    }

    @Test(.enabled(if: hasSkopeo, "skopeo or openssl is not installed"))
    func `skopeo sends the registry the token from its helper`() async throws {
        try await Stage.play { stage in
            let (server, port) = try await stage.startToolServer()
            stage.link(ringbackAs: "docker-credential-ringback")
            try await stage.ringback(
                "origin", "add", "https://127.0.0.1:\(port)", "--account", "work", "--username", "ada", status: 0)
            try stage.write(
                #"{"credHelpers": {"127.0.0.1:\#(port)": "ringback"}}"#, to: "\(stage.directory)/auth.json")
            let arguments = [
                "inspect", "--authfile", "\(stage.directory)/auth.json", "--tls-verify=false", "--raw",
                "docker://127.0.0.1:\(port)/team/app:1",
            ]
            let signedOut = try await stage.run("/usr/bin/skopeo", arguments)
            #expect(signedOut.status != 0 && signedOut.err.contains("ringback login work"), "\(signedOut)")
            try await stage.signIn()
            try await stage.run("/usr/bin/skopeo", arguments, status: 0, prints: "ok")
            let token = try #require(try await stage.token())
            let line = try await server.line("the request with the token") {
                $0.hasPrefix("/v2/team/app/manifests/1 Basic")
            }
            let decoded = try await stage.run("/usr/bin/base64", ["-d"], stdin: String(line.split(separator: " ")[2]))
            #expect(decoded.out == "ada:\(token)", "\(line)")
        }
    }
}
