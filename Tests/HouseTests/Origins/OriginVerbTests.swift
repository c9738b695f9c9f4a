import Glibc
import RingbackBase
import Testing

@Suite struct `ringback origin` {
    private func text(of path: String) throws -> String {
        try #require(FileTree.text(of: path))
    }

    @Test func `origin add and remove edit the configuration of a running daemon`() async throws {
        try await Stage.playSignedIn { stage in
            let before = try text(of: stage.configuration)
            try await stage.ringback(
                "origin", "add", "https://git.example.org", "--account", "work", "--username", "oauth2", status: 0,
                out: "Added to \(stage.configuration): https://git.example.org/*\n")
            #expect(
                try text(of: stage.configuration)
                    == before
                    + "\n[[origin]]\nurl = \"https://git.example.org/*\"\naccount = \"work\"\nusername = \"oauth2\"\n")
            #expect(FileTree.mode(of: stage.configuration) == 0o600)
            let found = try await stage.api("POST", "/v1/lookup", ["url": "https://git.example.org/x"])
            #expect(found["username"] == "oauth2", "\(found)")

            try await stage.ringback("origin", "remove", "https://git.example.org/", status: 0)
            #expect(try text(of: stage.configuration) == before)
            #expect(try await stage.api("POST", "/v1/lookup", ["url": "https://git.example.org/x"]).status == 404)
        }
    }

    @Test(.enabled(if: unsafe access("/usr/bin/git", X_OK) == 0, "git is not installed"))
    func `origin add names setup git, until that has been done`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let next = "For git, run: ringback setup git\n"
            let first = try await stage.ringback("origin", "add", "https://git.example.org", "--account", "work")
            #expect(first.status == 0 && first.err.hasSuffix(next), "\(first)")
            let mail = try await stage.ringback("origin", "add", "imaps://mail.example.org", "--account", "work")
            #expect(mail.status == 0 && !mail.err.contains(next), "\(mail)")
            let cluster = try await stage.ringback(
                "origin", "add", "https://k8s.example.org", "--account", "work", "--kind", "id_token")
            #expect(cluster.status == 0 && !cluster.err.contains(next), "\(cluster)")
            let done = try await stage.ringback("setup", "git", "--yes", status: 0)
            #expect(!done.out.contains("k8s.example.org"), "\(done)")
            try await stage.ringback("origin", "remove", "https://git.example.org/", status: 0)
            let second = try await stage.ringback("origin", "add", "https://git.example.org", "--account", "home")
            #expect(second.status == 0 && !second.err.contains(next), "\(second)")
        }
    }

    @Test func `origin add writes every key of a table`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await stage.ringback(
                "origin", "add", "https://api.example.org/v1/*", "--account", "work", "--match-username", "ada",
                "--scope", "read write", "--audience", "a \"b\"", "--resource", "https://api.example.org", "--kind",
                "access_token", "--header", "X-Token: {token}", "--header", "X-Kind: t", status: 0)
            let listed = try await stage.ringback("origin", "list", "--json")
            let origin = try listed.json["origins"]?.array?.first
            #expect(origin?["match_username"] == "ada" && origin?["audience"] == "a \"b\"", "\(listed)")
            #expect(origin?["headers"] == ["X-Token: {token}", "X-Kind: t"])
            let table = try await stage.ringback("origin", "list")
            #expect(table.out.contains("https://api.example.org/v1/*") && table.out.contains("read write"), "\(table)")
        }
    }

    @Test func `origin add writes nothing that the daemon would reject`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let before = try text(of: stage.configuration)
            for (arguments, word) in [
                (["https://git.example.org", "--account", "wrok"], "did you mean work?"),
                (["http://git.example.org", "--account", "work"], "is not encrypted"),
                (["git.example.org", "--account", "work"], "Write https://git.example.org"),
                (["https://", "--account", "work"], "URL of an origin"),
                (["https://git.example.org", "--account", "work", "--header", "Host: {token}"], "connection"),
                (["https://git.example.org", "--account", "work", "--kind", "cookie"], "id_token"),
            ] {
                let refused = try await stage.run("ringback", ["origin", "add"] + arguments)
                #expect(refused.status != 0 && refused.err.contains(word), "\(refused)")
                #expect(try text(of: stage.configuration) == before)
            }
            _ = try await stage.ringback("origin", "add", "https://git.example.org", "--account", "work")
            let twice = try await stage.ringback(
                "origin", "add", "https://git.example.org/*", "--account", "home", status: 78, says: "is there already")
            #expect(twice.err.hasSuffix("Run: ringback origin remove https://git.example.org\n"), "\(twice)")
            #expect(try text(of: stage.configuration).contains("account = \"work\"\n"))
        }
    }

    @Test func `origin remove keeps comments, links and other tables`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let text = """
                # mine
                [accounts.work]
                issuer = "https://id.example.org"
                client_id = "c"

                [[origin]] # first
                url = "https://a.example/*"
                account = "work"
                header = [
                    "A: {token}",
                ]

                # about the second
                [[origin]]
                url = "https://b.example/*"
                account = "work"
                # about notices
                [notifications]
                enabled = true
                """
            let real = "\(stage.directory)/real.toml"
            try stage.write(text, to: real)
            #expect(unsafe remove(stage.configuration) == 0 && symlink(real, stage.configuration) == 0)
            try await stage.ringback("origin", "remove", "https://a.example", status: 0)
            let rest = try self.text(of: real)
            #expect(!rest.contains("a.example") && !rest.contains("{token}") && rest.contains("# about the second"))
            #expect(rest.contains("# mine\n") && rest.contains("b.example"), "\(rest)")
            try await stage.ringback("origin", "remove", "https://b.example", "--json", status: 0)
            #expect(try self.text(of: real).hasSuffix("# about notices\n[notifications]\nenabled = true\n"))
            try await stage.ringback("origin", "remove", "https://b.example", status: 1, says: "There is no origin")
        }
    }

    @Test func `origin add keeps carriage returns`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let account = "[accounts.work]\r\nissuer = \"https://id.example.org\"\r\nclient_id = \"c\"\r\n"
            try stage.write(configuration: account)
            try await stage.ringback("origin", "add", "https://git.example.org", "--account", "work", status: 0)
            let table = "[[origin]]\r\nurl = \"https://git.example.org/*\"\r\naccount = \"work\"\r\n"
            #expect(try text(of: stage.configuration) == "\(account)\r\n\(table)")
            try await stage.ringback("origin", "remove", "https://git.example.org", status: 0)
            #expect(try text(of: stage.configuration) == account)
        }
    }

    @Test func `origin add creates a missing configuration`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let accounts = "[accounts.work]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n"
            #expect(unsafe mkdir(stage.dropIns, 0o700) == 0 && remove(stage.configuration) == 0)
            try stage.write(accounts, to: "\(stage.dropIns)/work.toml")
            try await stage.ringback("origin", "add", "https://git.example.org", "--account", "work", status: 0)
            #expect(FileTree.mode(of: stage.configuration) == 0o600)
            let files = try await stage.run("/usr/bin/find", ["\(stage.directory)/config", "-type", "f"])
            #expect(files.lines.count == 2, "\(files)")
        }
    }

    @Test func `origin test names the origin of a URL, or why there is none`() async throws {
        let configuration =
            Stage.twoAccounts + """
                [[origin]]
                url = "https://git.example.org/team/*"
                account = "work"
                scope = "read"
                [[origin]]
                url = "https://two.example.org/*"
                account = "work"
                match_username = "ada"

                """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await stage.ringback(
                "origin", "test", "https://git.example.org/team/a", status: 0,
                prints: "the token of work with the scope read")
            for (url, word) in [
                ("https://git.example.org/other", "have other paths"),
                ("https://git.example.org/team/../a", "different ways"),
                ("https://else.example", "scheme, host and port"),
                ("https://two.example.org/", "--username"), ("nonsense", "is no URL"),
            ] {
                let none = try await stage.ringback("origin", "test", url)
                #expect(none.status == (url == "nonsense" ? 64 : 1) && none.err.contains(word), "\(none)")
            }
            try await stage.ringback("origin", "test", "https://two.example.org/", "--username", "ada", status: 0)
        }
    }
}
