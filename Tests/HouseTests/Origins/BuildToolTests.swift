import RingbackBase
import Testing

@Suite struct `build tools` {
    private static let origins = """
        [[origin]]
        url = "https://tools.example.org/*"
        account = "work"
        username = "ada"

        [[origin]]
        url = "https://bare.example.org/*"
        account = "work"
        without_scheme = true

        [[origin]]
        url = "https://home.example.org/*"
        account = "home"

        [[origin]]
        url = "https://keys.example.org/*"
        account = "work"
        header = ["X-Token: {token}", "X-User: ada"]

        [[origin]]
        url = "https://sts.googleapis.com/*"
        account = "work"
        kind = "id_token"

        """

    private static func request(to host: String, kind: String = "get") -> String {
        #"{"v":1,"registry":{"index-url":"sparse+https://\#(host)/index/"},"kind":"\#(kind)","operation":"read"}"#
            + "\n"
    }

    @Test func `cargo's provider answers a line each, and ends with its input`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            stage.link(ringbackAs: "cargo-credential-ringback")
            let requests =
                Self.request(to: "tools.example.org") + Self.request(to: "other.example.org")
                + Self.request(to: "tools.example.org", kind: "login") + Self.request(to: "home.example.org")
                + Self.request(to: "keys.example.org") + "{}\n" + Self.request(to: "other.example.org", kind: "login")
                + Self.request(to: "home.example.org", kind: "logout")
            for (program, arguments) in [
                ("ringback", ["cargo-credential", "--cargo-plugin"]), ("ringback", ["--cargo-plugin"]),
                ("\(stage.directory)/bin/cargo-credential-ringback", ["--cargo-plugin"]),
            ] {
                let answer = try await stage.run(program, arguments, stdin: requests, status: 0)
                #expect(answer.err.isEmpty, "\(answer)")
                try #require(answer.lines.count == 9 && answer.lines[0] == #"{"v":[1]}"#, "\(answer)")
                let found = try JSON(parsing: answer.lines[1].utf8)["Ok"]
                #expect(found?["token"]?.string == "Bearer \(token)" && found?["cache"] == "expires", "\(answer)")
                #expect((found?["expiration"]?.integer ?? 0) > 0)
                #expect(answer.lines[2] == #"{"Err":{"kind":"url-not-supported"}}"#)
                #expect(answer.lines[3] == #"{"Err":{"kind":"operation-not-supported"}}"#)
                // cargo asks its next provider. Nobody is signed in at the last one.
                #expect(answer.lines[7] == answer.lines[2] && answer.lines[8] == answer.lines[3], "\(answer)")
                #expect(answer.lines[4].contains(#""kind":"other""#) && answer.lines[4].contains("ringback login home"))
                #expect(answer.lines[5].contains("cargo sends no other field"))
                #expect(answer.lines[6].contains("version"))
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "cargo" && $0["origin"] == "https://tools.example.org/*" })
            // A login tells of no token.
            #expect(!audit.contains { $0["event"] == "token_rejected" }, "\(audit)")
        }
    }

    @Test func `go gets a token where a server asks for one, and a new one where it was refused`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            let first = try await stage.ringback("goauth", status: 0, out: "")
            #expect(first.err.isEmpty, "\(first)")
            let url = "https://tools.example.org/mod?go-get=1"
            let challenge = "HTTP/1.1 401 Unauthorized\nWww-Authenticate: Bearer realm=\"a\"\n\n"
            for response in [challenge, "HTTP/1.1 404 Not Found\n\n", ""] {
                let answer = try await stage.ringback("goauth", url, stdin: response)
                let expected = "\(url)\nhttps://tools.example.org/mod\n\nAuthorization: Bearer \(token)\n\n"
                #expect(answer.status == 0 && answer.out == expected && answer.err.isEmpty, "\(answer)")
            }
            let refused = challenge.replacing("realm=\"a\"", with: "error=\"invalid_token\"")
            let renewed = try await stage.ringback("goauth", url, stdin: refused, status: 0)
            #expect(!renewed.out.contains(token), "\(renewed)")
            let newToken = try #require(try await stage.token())
            #expect(renewed.out.contains("Authorization: Bearer \(newToken)\n"), "\(renewed)")
            // Other processes that had sent the first token, as go runs one for each module.
            for _ in 0..<3 {
                let late = try await stage.ringback("goauth", url, stdin: refused, status: 0, out: renewed.out)
                #expect(late.err.isEmpty, "\(late)")
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.count { $0["event"] == "token_rejected" && $0["tool"] == "go" } == 1, "\(audit)")
            let other = try await stage.ringback(
                "goauth", "https://other.example.org/mod", stdin: challenge, status: 0, out: "")
            #expect(other.err.isEmpty, "\(other)")
            try await stage.ringback(
                "goauth", "https://home.example.org/mod", stdin: challenge, status: 3, says: "ringback login home")
            for (wrong, response) in [("http://tools.example.org/mod", challenge), (url, "no status\n")] {
                let answer = try await stage.ringback("goauth", wrong, stdin: response, status: 1, out: "")
                #expect(!answer.err.isEmpty, "\(answer)")
            }
        }
    }

    @Test func `Bazel, Terraform and pnpm get the token of the origin, and none for another server`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            for name in [
                "bazel-credential-ringback", "terraform-credentials-ringback", "pnpm-ringback-bare.example.org%2Fnpm",
                "pnpm-ringback-tools.example.org", "pnpm-ringback-other.example.org",
            ] { stage.link(ringbackAs: name) }
            let links = "\(stage.directory)/bin"
            for (program, words) in [("ringback", ["bazel-credential"]), ("\(links)/bazel-credential-ringback", [])] {
                let answer = try await stage.run(
                    program, words + ["get"], stdin: #"{"uri":"https://keys.example.org/a?b"}"#)
                let headers = try answer.json["headers"]
                let expected: JSON = ["X-Token": .array([.string(token)]), "X-User": ["ada"]]
                #expect(answer.status == 0 && answer.err.isEmpty && headers == expected, "\(answer)")
            }
            try await stage.ringback(
                "bazel-credential", "get", stdin: #"{"uri":"https://other.example.org/a"}"#, status: 1, out: "",
                says: "origin add")
            for (program, words) in [
                ("ringback", ["terraform-credential"]), ("\(links)/terraform-credentials-ringback", []),
            ] {
                try await stage.run(
                    program, words + ["get", "tools.example.org"], status: 0, out: #"{"token":"\#(token)"}"# + "\n")
                let other = try await stage.run(program, words + ["get", "other.example.org"], status: 0, out: "{}\n")
                #expect(other.err.isEmpty, "\(other)")
                try await stage.run(
                    program, words + ["store", "tools.example.org"], stdin: #"{"token":"hunter2"}"#, status: 1, out: "",
                    says: "stores no tokens")
                try await stage.run(program, words + ["forget", "tools.example.org"], status: 0)
                try await stage.run(
                    program, words + ["get", "keys.example.org"], status: 1, out: "", says: "Terraform sends")
            }
            let pnpm = try await stage.run(
                "\(links)/pnpm-ringback-bare.example.org%2Fnpm", [], status: 0, out: "Bearer \(token)\n")
            #expect(pnpm.err.isEmpty, "\(pnpm)")
            // As pnpm starts it: in a shell, with empty input.
            try await stage.run(
                "/bin/sh", ["-c", "\(links)/pnpm-ringback-bare.example.org%2Fnpm"], stdin: "", status: 0, out: pnpm.out)
            // As Bazel writes a URI, without a line break.
            let escaped = try await stage.run(
                "\(links)/bazel-credential-ringback", ["get"],
                stdin: #"{"uri":"https://tools.example.org/token/?scope\u003da\u0026service\u003d\u0027b\u0027"}"#)
            let bearer: JSON = ["Authorization": .array([.string("Bearer \(token)")])]
            #expect(try escaped.status == 0 && JSON(parsing: escaped.out.utf8)["headers"] == bearer, "\(escaped)")
            try await stage.run("\(links)/pnpm-ringback-other.example.org", [], status: 1, out: "", says: "origin add")
            try await stage.run(
                "\(links)/pnpm-ringback-tools.example.org", [], status: 4, out: "", says: "without_scheme = true")
        }
    }

    @Test func `keyring answers for its own indexes, and leaves the rest to the next program`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let token = try #require(try await stage.token())
            let index = "https://tools.example.org/simple/"
            let own = "\(stage.directory)/own"
            FileTree.makeDirectory(own)
            stage.link(ringbackAs: "keyring", in: own)
            let path = ["PATH": "\(own):\(stage.directory)/bin:/usr/bin:/bin"]
            for (arguments, expected) in [
                (
                    ["--mode=creds", "--output=json", "get", index],
                    #"{"username":"ada","password":"\#(token)"}"# + "\n"
                ),
                (["get", index, "bob"], token + "\n"), (["get", "bare.example.org", "bob"], token + "\n"),
                (["get", index, "--mode", "creds"], "ada\n\(token)\n"),
            ] {
                let answer = try await stage.run(
                    "\(own)/keyring", arguments, environment: path, status: 0, out: expected)
                #expect(answer.err.isEmpty, "\(arguments) \(answer)")
            }
            let nobody = try await stage.run(
                "\(own)/keyring", ["get", "https://other.example.org/", "bob"],
                environment: ["PATH": "\(own):/nowhere"], status: 1, out: "")
            #expect(nobody.err.isEmpty, "\(nobody)")
            // pip asks for the host alone after it asked for http://tools.example.org/simple/.
            for (service, words) in [
                ("http://tools.example.org/simple/", nil), ("tools.example.org", "without_scheme"),
            ] {
                let plain = try await stage.run(
                    "\(own)/keyring", ["get", service, "bob"], environment: ["PATH": "\(own):/nowhere"], status: 1,
                    out: "")
                #expect(words.map(plain.err.contains) ?? plain.err.isEmpty, "\(service) \(plain)")
            }
            try await stage.run(
                "\(own)/keyring", ["--help"], environment: ["PATH": "\(own):/nowhere"], status: 1,
                says: "no other keyring in PATH")
            try stage.write(
                "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n", to: "\(stage.directory)/bin/keyring", mode: 0o700)
            for arguments in [
                ["get", "https://other.example.org/", "bob"], ["get", "tools.example.org", "bob"],
                ["set", index, "bob"], ["--list-backends"], ["--help"],
                [],
                ["-b", "a.Backend", "get", index, "bob"], ["get", index, "bob", "--socket", "/nowhere"],
            ] {
                let passed = try await stage.run("\(own)/keyring", arguments, environment: path)
                let expected = arguments.isEmpty ? "<>" : arguments.map { "<\($0)>" }.joined()
                #expect(passed.status == 7 && passed.out == expected, "\(arguments) \(passed)")
            }
            try await stage.run(
                "\(own)/keyring", ["get", "https://home.example.org/", "bob"], environment: path, status: 3, out: "")
        }
    }

    @Test func `Google's libraries get an ID token, or why there is none`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let signedOut = try await stage.ringback("google-credential")
            let failure = try signedOut.json
            #expect(signedOut.status == 0 && signedOut.err.isEmpty && failure["success"] == false, "\(signedOut)")
            #expect(failure["message"]?.string?.contains("ringback login work") == true, "\(signedOut)")
            try await stage.signIn()
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            for arguments in [[], ["--account", "work"]] {
                let answer = try await stage.run("ringback", ["google-credential"] + arguments)
                let json = try answer.json
                #expect(json["success"] == true && json["id_token"] == session["id_token"], "\(answer)")
            }
            let wrong = try await stage.ringback(
                "google-credential",
                environment: ["GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE": "urn:ietf:params:oauth:token-type:saml2"])
            let refusal = try wrong.json
            #expect(wrong.status == 0 && refusal["success"] == false, "\(wrong)")
        }
        try await Stage.playSignedIn { stage in
            let nowhere = try await stage.ringback("google-credential")
            let message = try nowhere.json["message"]?.string ?? ""
            #expect(message.contains("ringback origin add https://sts.googleapis.com"), "\(nowhere)")
        }
    }

    @Test func `setup makes go ask, after what it asked before`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins, startsDaemon: false) { stage in
            let value = "\(stage.directory)/goauth"
            // Like go: the value of `env -w` counts, and netrc without one.
            let script = """
                #!/bin/sh
                [ "$1" = -C ] && shift 2
                case "$2" in
                -w) printf '%s' "${3#GOAUTH=}" >"\(value)" ;;
                -u) rm "\(value)" ;;
                *) cat "\(value)" 2>/dev/null || echo netrc ;;
                esac

                """
            try stage.write(script, to: "\(stage.directory)/bin/go", mode: 0o700)
            let shown = try await stage.ringback("setup", "go", "--print", status: 0)
            #expect(shown.out.hasPrefix("go env -w 'GOAUTH=netrc; /"), "\(shown)")
            #expect(FileTree.text(of: value) == nil)
            try await stage.ringback("setup", "go", "--yes", status: 0, out: shown.out)
            #expect(FileTree.text(of: value)?.hasSuffix("/ringback goauth") == true)
            let row = try await stage.ringback("setup").lines.first { $0.hasPrefix("go ") } ?? ""
            #expect(row.contains(" set up ") && row.contains("https://tools.example.org/*"), "\(row)")
            #expect(try await stage.ringback("setup", "go").err.contains("nothing to change"))
            try await stage.ringback("setup", "go", "--undo", "--yes", status: 0, out: "go env -u GOAUTH\n")
            #expect(FileTree.text(of: value) == nil)
            try stage.write("off", to: value)
            try await stage.ringback("setup", "go", "--yes", status: 1, out: "", says: "GOAUTH is off")
        }
    }
}
