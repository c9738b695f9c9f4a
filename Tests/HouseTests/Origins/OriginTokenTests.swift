import RingbackBase
import Testing

@Suite struct `ringback token --origin` {
    private static let origins = """
        [[origin]]
        url = "https://api.example.org/v1/*"
        account = "work"
        username = "ada"

        [[origin]]
        url = "https://plain.example.org/*"
        account = "work"

        [[origin]]
        url = "https://keys.example.org/*"
        account = "work"
        header = ["X-Token: t {token}", "X-User: {username}"]
        username = "o'neil"

        [[origin]]
        url = "imaps://mail.example.org/*"
        account = "work"
        match_username = "ada"
        username = "ada@example.org"

        [[origin]]
        url = "https://[::1]:8443/*"
        account = "work"
        kind = "id_token"

        """

    @Test func `token --origin prints every format`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            let idToken = try #require(session["id_token"]?.string)
            let (api, keys) = ("https://api.example.org/v1/x", "https://keys.example.org")
            for (arguments, expected) in [
                ([api], token), ([api, "--format", "raw"], token), (["https://[::1]:8443"], idToken),
                ([api, "--format", "header"], "Authorization: Bearer \(token)"),
                ([keys, "--format", "header"], "X-Token: t \(token)\nX-User: o'neil"),
                ([keys, "--format", "json-headers"], #"{"X-Token":"t \#(token)","X-User":"o'neil"}"#),
                ([api, "--format", "netrc"], "machine api.example.org login ada password \(token)"),
                (
                    ["https://plain.example.org", "--format", "netrc"],
                    "machine plain.example.org login oauth2 password \(token)"
                ),
                (["https://[::1]:8443", "--format", "netrc"], "machine ::1 login oauth2 password \(idToken)"),
                ([api, "--format", "env", "--variable", "API_TOKEN"], "API_TOKEN=\(token)"),
            ] {
                let output = try await stage.run(
                    "ringback", ["token", "--origin"] + arguments, status: 0, out: expected + "\n")
                #expect(output.err.isEmpty, "\(output)")
            }
            for arguments in [["--json"], ["--format", "json"]] {
                let output = try await stage.run("ringback", ["token", "--origin", api] + arguments)
                let json = try output.json
                #expect(json["account"] == "work" && json["username"] == "ada" && json["secret"]?.string == token)
            }
            let mail = try await stage.ringback(
                "token", "--origin", "imaps://mail.example.org", "--username", "ada", "--format", "xoauth2")
            let decoded = try await stage.run("/usr/bin/base64", ["-d"], stdin: mail.out)
            #expect(decoded.out == "user=ada@example.org\u{1}auth=Bearer \(token)\u{1}\u{1}", "\(mail)")
            // Names are UTF-8 in both mechanisms; RFC 5801 section 4 escapes two characters.
            for (name, escaped) in [
                ("jürgen@bücher.example", "jürgen@bücher.example"), ("用户@例え.example", "用户@例え.example"),
                ("é=\u{301}a,b@example.org", "é=3D\u{301}a=2Cb@example.org"),
            ] {
                for (format, expected) in [
                    ("xoauth2", "user=\(name)\u{1}auth=Bearer \(token)\u{1}\u{1}"),
                    ("oauthbearer", "n,a=\(escaped),\u{1}auth=Bearer \(token)\u{1}\u{1}"),
                ] {
                    let answer = try await stage.ringback(
                        "token", "--origin", "https://plain.example.org", "--username", name, "--format", format)
                    let said = try await stage.run("/usr/bin/base64", ["-d"], stdin: answer.out)
                    #expect(answer.status == 0 && said.out == expected, "\(name) \(answer)")
                }
            }
            for name in ["a b", "a\u{2028}b", "a\u{202E}b", "a\u{A0}b"] {
                try await stage.ringback(
                    "token", "--origin", "https://plain.example.org", "--username", name, "--format", "xoauth2",
                    status: 1, out: "")
            }
        }
    }

    @Test func `token --origin prints nothing without an origin or with contradicting options`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            for (arguments, status, words) in [
                (["--origin", "https://api.example.org/v2"], 1, "No origin"),
                (["--origin", "https://api.example.org.evil.org/v1"], 1, "No origin"),
                (["--origin", "imaps://mail.example.org"], 1, "No origin"),
                (["--origin", "api.example.org"], 64, "no URL"),
                (["work", "--origin", "https://api.example.org/v1"], 64, "--origin"),
                (["--origin", "https://api.example.org/v1", "--scope", "a"], 64, "--origin"),
                (["--origin", "https://api.example.org/v1", "--kind", "id_token"], 64, "--origin"),
                (["--origin", "https://api.example.org/v1", "--min-valid", "9"], 64, "--origin"),
                (["work", "--username", "ada"], 64, "--origin"), (["work", "--format", "netrc"], 64, "--origin"),
                (["work", "--format=netrc"], 64, "--origin"), (["work", "--variable", "A"], 64, "env"),
                (["work", "--format", "env", "--variable", "A;B"], 64, "variable"),
                (["work", "--format", "env", "--variable", ""], 64, "variable"),
                (["--origin", "https://keys.example.org", "--format", "netrc"], 1, "user name has a character"),
                (["--origin", "https://plain.example.org", "--format", "xoauth2"], 1, "set username"),
            ] as [([String], Int32, String)] {
                try await stage.run("ringback", ["token"] + arguments, status: status, out: "", says: words)
            }
        }
    }

    @Test func `shells and netrc readers get the token as it is`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            try await stage.run(
                "/bin/sh",
                [
                    "-c", #"eval "$("$0" token work --format env)" && printf '%s' "$RINGBACK_TOKEN""#,
                    Programs.path("ringback"),
                ], status: 0, out: token)
            let line = try await stage.ringback(
                "token", "--origin", "https://api.example.org/v1", "--format", "netrc")
            try stage.write(line.out, to: "\(stage.directory)/netrc")
            let python = try await stage.run(
                "/usr/bin/env",
                [
                    "python3", "-c",
                    "import netrc, sys; print(*netrc.netrc(sys.argv[1]).authenticators('api.example.org'), sep='\\n')",
                    "\(stage.directory)/netrc",
                ])
            #expect(python.lines.first == "ada" && python.lines.last == token, "\(python)")
            let (server, port) = try await stage.startToolServer()
            try stage.write(
                configuration: Stage.twoAccounts
                    + "[[origin]]\nurl = \"https://127.0.0.1:\(port)/*\"\naccount = \"work\"\n")
            try await stage.ringback("reload", status: 0)
            let local = try await stage.ringback("token", "--origin", "https://127.0.0.1:\(port)", "--format", "netrc")
            try stage.write(local.out, to: "\(stage.directory)/netrc")
            try await stage.run(
                "/usr/bin/curl",
                [
                    "-sSf", "--netrc-file", "\(stage.directory)/netrc", "--cacert", "\(stage.directory)/server.pem",
                    "https://127.0.0.1:\(port)/x",
                ], status: 0)
            let request = try await server.line("curl's request") { $0.hasPrefix("/x Basic ") }
            let decoded = try await stage.run(
                "/usr/bin/base64", ["-d"], stdin: String(request.split(separator: " ")[2]))
            #expect(decoded.out == "oauth2:\(token)", "\(request)")
        }
    }

    /// A socket at which every response has this token.
    private func socket(_ number: Int, giving token: String, on stage: Stage) async throws -> String {
        let socket = "\(stage.directory)/run/far\(number).sock"
        let answer: JSON = [
            "account": "work", "headers": .array([.string("Authorization: Bearer \(token)")]), "secret": .string(token),
            "access_token": .string(token), "id_token": .string(token),
        ]
        let far = try stage.start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/hostile_daemon.py", socket, answer.text])
        _ = try await far.line("who listens") { $0 == "listening" }
        return socket
    }

    /// `env` is one word of a shell that is this token. A netrc line is printed only if all readers read it alike.
    private func expectOneWord(_ token: String, from socket: String, on stage: Stage) async throws {
        let env = try await stage.ringback("token", "work", "--format", "env", "--socket", socket, status: 0)
        #expect(env.lines.count == 1, "\(env)")
        let shell = try await stage.run(
            "/bin/sh", ["-c", "\(env.out)printf '%s' \"$RINGBACK_TOKEN\""], status: 0, out: token)
        #expect(shell.err.isEmpty, "\(token): \(shell)")
        let netrc = try await stage.ringback(
            "token", "--origin", "https://a.example.org", "--format", "netrc", "--socket", socket)
        let quotes: Set<Character> = ["\"", "'", "\\"]
        let isPlain = quotes.isDisjoint(with: token) && !token.hasPrefix("#")
        #expect(netrc.status == (isPlain ? 0 : 1) && netrc.out.isEmpty != isPlain, "\(token): \(netrc)")
    }

    @Test
    func `a token with shell characters stays one word`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (number, token) in ["a'b", "~a", "$(x)`y`", "a\"b", #"a\b"#, "a;b&c|d>e*", "#a"].enumerated() {
                let socket = try await socket(number, giving: token, on: stage)
                try await expectOneWord(token, from: socket, on: stage)
            }
        }
    }

    @Test func `a header with the project's api_key is given to tools that send several fields`() async throws {
        let origin = """
            [[origin]]
            url = "https://project.example.org/rest/*"
            account = "app"
            header = ["apikey: {api_key}", "Authorization: Bearer {token}"]

            """
        try await Stage.playSignedUp(["autoconfirm": true], configuration: Stage.project + origin) { stage in
            let token = try #require(try await stage.token("app"))
            let url = "https://project.example.org/rest/v1/rows"
            let printed = try await stage.ringback("token", "--origin", url, "--format", "header")
            #expect(printed.out == "apikey: sb_publishable_sandbox\nAuthorization: Bearer \(token)\n", "\(printed)")
            let fields = try await stage.ringback("bazel-credential", "get", stdin: "{\"uri\":\"\(url)\"}")
            let headers = try fields.json["headers"]
            #expect(
                headers == ["apikey": ["sb_publishable_sandbox"], "Authorization": [.string("Bearer \(token)")]],
                "\(fields)")
        }
    }
}
