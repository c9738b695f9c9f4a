import Glibc
import RingbackBase
import TestSupport
import Testing

/// Restricted sockets as a person and a program at their far end meet them: `ringback expose` and the real daemon.
@Suite struct `An exposed account` {
    private static let accounts = """
        [accounts.mail]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        [accounts.home]
        issuer = "{sandbox}/tenant-a"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        """

    private func exposed(_ name: String, _ stage: Stage) -> String {
        "\(stage.directory)/run/ringback/exposed/\(name).sock"
    }

    private func remote(_ stage: Stage, _ socket: String, _ arguments: String...) async throws -> Output {
        try await stage.run("ringback", arguments, environment: ["RINGBACK_SOCK": socket])
    }

    private func ask(_ socket: String, _ method: String, _ path: String, _ body: String? = nil) async throws -> Answer {
        let connection = try Connection(to: .unix(socket))
        await connection.send(Stage.request(method, path, body))
        return try await connection.answer()
    }

    @Test func `is served by a socket that the other end's ringback works with unchanged`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("mail")
            try await stage.signIn("home", as: "bob")
            try await stage.ringback(
                "expose", "ci", "--account", "mail", "--scope", "openid", "--ttl", "8h", status: 0,
                out: exposed("ci", stage) + "\n")
            #expect(FileTree.mode(of: exposed("ci", stage)) == 0o600)
            let token = try await remote(stage, exposed("ci", stage), "token", "mail", "--format", "json").expect(0)
            let answer = try JSON(parsing: Array(token.out.utf8))
            #expect(answer["scope"] == "openid" && answer["account"] == "mail")
            // Downscoped by the provider: it is not the token that the user's own programs get.
            #expect(try await stage.token("mail") != answer["access_token"]?.string)
            let again = try await remote(stage, exposed("ci", stage), "token", "mail")
            #expect(again.out == (answer["access_token"]?.string ?? "") + "\n")
            let accounts = try await remote(stage, exposed("ci", stage), "accounts", "--json").expect(
                0, prints: "alice")
            #expect(!accounts.out.contains("home"))
            try await remote(stage, exposed("ci", stage), "status").expect(
                0, prints: "Restricted ci: tokens of mail for at most “openid”")
            try await remote(stage, exposed("ci", stage), "token", "mail", "--format", "xoauth2").expect(0)
        }
    }

    @Test func `until a disconnect ends with the connection that made it, and is not there after a restart`()
        async throws
    {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("mail")
            func made(_ name: String) async throws -> Connection {
                let connection = try Connection(to: .unix(stage.socket))
                let order = #"{"name":"\#(name)","account":"mail","until":"disconnect"}"#
                await connection.send(Stage.request("POST", "/v1/exposed-sockets", order))
                let answer = try await connection.answer()
                #expect(answer.status == 201, "\(answer)")
                #expect(answer.json["until"] == "disconnect")
                return connection
            }
            let first = try await made("one")
            #expect(try await ask(exposed("one", stage), "GET", "/v1/accounts/mail/session").status == 200)
            // The connection serves other requests meanwhile.
            await first.send(Stage.request("GET", "/v1/exposed-sockets/one"))
            #expect(try await first.answer().status == 200)
            first.close()
            try await stage.eventually("the socket's end") { FileTree.mode(of: exposed("one", stage)) == nil }
            #expect(try await stage.api("GET", "/v1/exposed-sockets")["exposed_sockets"] == [])

            let second = try await made("one")
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            try await stage.startDaemon()
            #expect(try await stage.api("GET", "/v1/exposed-sockets")["exposed_sockets"] == [])
            #expect(FileTree.mode(of: exposed("one", stage)) == nil)
            second.close()
        }
    }

    @Test func `keeps the directory that a program has mounted and locked, also when the daemon is killed`()
        async throws
    {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("mail")
            let order = #"{"name":"one","account":"mail","until":"disconnect"}"#
            func made() async throws -> Connection {
                let connection = try Connection(to: .unix(stage.socket))
                await connection.send(Stage.request("POST", "/v1/exposed-sockets", order))
                let answer = try await connection.answer()
                #expect(answer.status == 201, "\(answer)")
                return connection
            }
            let directory = "\(stage.directory)/run/ringback/mount/one"
            let first = try await made()
            let held = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            #expect(held >= 0 && flock(held, LOCK_SH | LOCK_NB) == 0)
            first.close()
            try await stage.eventually("the socket's end") { FileTree.mode(of: exposed("one", stage)) == nil }
            for isKilled in [false, true] {
                let connection = try await made()
                stage.daemon?.send(isKilled ? SIGKILL : SIGTERM)
                _ = try await stage.daemon?.end()
                connection.close()
                try await stage.startDaemon()
                #expect(FileTree.mode(of: "\(directory)/socket") == nil)
            }
            let last = try await made()
            var (mounted, now) = (stat(), stat())
            #expect(unsafe fstat(held, &mounted) == 0 && stat(directory, &now) == 0)
            #expect(mounted.st_ino == now.st_ino)
            close(held)
            last.close()
            try await stage.eventually("the directory's end") { FileTree.mode(of: directory) == nil }
        }
    }

    @Test func `is listed, and no more there after it was revoked`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("mail")
            let made = try await stage.ringback("expose", "ci", "--account", "mail", "--account", "home", "--json")
            let grant = try JSON(parsing: Array(made.out.utf8))
            #expect(grant["socket"]?.string == exposed("ci", stage) && grant["accounts"] == ["home", "mail"])
            let listed = try await stage.ringback("expose", "list", "--json")
            #expect(
                try JSON(parsing: Array(listed.out.utf8))["exposed_sockets"]?.array?.map { $0["id"] } == [grant["id"]])
            #expect(try await stage.ringback("expose", "list").out.contains("ci    home,mail"))
            let open = try Connection(to: .unix(exposed("ci", stage)))
            await open.send(Stage.request("GET", "/v1/status"))
            #expect(try await open.answer().status == 200)
            try await stage.ringback("expose", "revoke", "ci", status: 0)
            // What was connected is closed, and nobody connects any more.
            await open.send(Stage.request("GET", "/v1/accounts/mail/session"))
            #expect(try await open.readToEnd() == "")
            let left = FileTree.all(in: "\(stage.directory)/run/ringback").map { $0.dropFirst(stage.directory.count) }
            #expect(left.filter { $0.contains("ci") } == [])
            #expect(try await remote(stage, exposed("ci", stage), "token", "mail").status == 2)
            try await stage.ringback("expose", "revoke", "ci", status: 1)
        }
    }

    @Test func `leaves no socket behind, though its daemon was killed`() async throws {
        let durable = "[[expose]]\nname = \"kept\"\naccount = \"mail\"\n"
        let gone = "[[expose]]\nname = \"gone\"\naccount = \"mail\"\n"
        try await Stage.play(Self.accounts + durable + gone) { stage in
            try await stage.ringback(
                "expose", "app", "--account", "mail", "--flatpak", "org.example.App", "--ttl", "1s")
            let daemon = try #require(stage.daemon)
            daemon.send(SIGKILL)
            _ = try await daemon.end()
            #expect(FileTree.names(in: "\(stage.directory)/run/ringback/exposed").contains("gone.sock"))
            try stage.write(configuration: Self.accounts + durable)
            try await stage.startDaemon()
            #expect(!FileTree.names(in: "\(stage.directory)/run/ringback/exposed").contains("gone.sock"))
            #expect(!FileTree.names(in: "\(stage.directory)/run/ringback/mount").contains("gone"))
            // Whether its time was over before or came after the start.
            try await stage.eventually("the end of app") {
                FileTree.names(in: "\(stage.directory)/run/app/org.example.App") == []
                    && FileTree.names(in: "\(stage.directory)/run/ringback/exposed") == ["kept.sock"]
                    && FileTree.names(in: "\(stage.directory)/run/ringback/mount") == ["kept"]
            }
            #expect(try await remote(stage, exposed("kept", stage), "status").status == 0)
        }
    }

    @Test func `is durable by the configuration, which a reload takes over`() async throws {
        let table = "[[expose]]\nname = \"kept\"\naccounts = [\"mail\"]\nscope = \"openid\"\nttl = \"8h\"\n"
        try await Stage.play(Self.accounts + table) { stage in
            try await stage.signIn("mail")
            #expect(try await remote(stage, exposed("kept", stage), "token", "mail").status == 0)
            let open = try Connection(to: .unix(exposed("kept", stage)))
            try await stage.ringback("expose", "kept", "--account", "mail", status: 1)
            let other = "[[expose]]\nname = \"other\"\naccount = \"home\"\n"
            try stage.write(configuration: Self.accounts + table + other)
            try await stage.ringback("reload", status: 0)
            #expect(FileTree.names(in: "\(stage.directory)/run/ringback/exposed") == ["kept.sock", "other.sock"])
            // What did not change keeps its connections.
            await open.send(Stage.request("GET", "/v1/status"))
            #expect(try await open.answer().status == 200)
            try stage.write(configuration: Self.accounts + other)
            try await stage.ringback("reload", status: 0)
            #expect(try await open.readToEnd() == "")
            #expect(FileTree.names(in: "\(stage.directory)/run/ringback/exposed") == ["other.sock"])
            try stage.write(configuration: Self.accounts + "[[expose]]\nname = \"x\"\naccount = \"nobody\"\n")
            try await stage.ringback("config", "check", status: 78)
            try await stage.ringback("reload", status: 78)
            #expect(FileTree.names(in: "\(stage.directory)/run/ringback/exposed") == ["other.sock"])
        }
    }

    @Test func `is where a Flatpak app sees it, too`() async throws {
        try await Stage.play(Self.accounts) { stage in
            try await stage.signIn("mail")
            let made = try await stage.ringback("expose", "app", "--account", "mail", "--flatpak", "org.example.App")
            let place = "\(stage.directory)/run/app/org.example.App/app.sock"
            #expect(made.out == place + "\n", "\(made)")
            #expect(try await remote(stage, place, "token", "mail").status == 0)
            #expect(FileTree.mode(of: place) == 0o600)
            try await stage.ringback("expose", "revoke", "app")
            #expect(FileTree.names(in: "\(stage.directory)/run/app/org.example.App") == [])
        }
    }

    @Test func `is not put through a link, nor where somebody else's file is`() async throws {
        try await Stage.play(Self.accounts) { stage in
            for name in ["run/app", "elsewhere"] { FileTree.makeDirectory("\(stage.directory)/\(name)") }
            #expect(unsafe symlink("\(stage.directory)/elsewhere", "\(stage.directory)/run/app/org.example.App") == 0)
            try await stage.ringback(
                "expose", "a", "--account", "mail", "--flatpak", "org.example.App", status: 1, says: "symbolic link")
            #expect(FileTree.names(in: "\(stage.directory)/elsewhere") == [])
            FileTree.makeDirectory("\(stage.directory)/run/ringback/exposed")
            try stage.write("mine", to: exposed("b", stage))
            try await stage.ringback("expose", "b", "--account", "mail", status: 1)
            #expect(FileTree.text(of: exposed("b", stage)) == "mine")
            // Nothing half-made remains.
            #expect(FileTree.names(in: "\(stage.directory)/run/ringback/mount") == [])
            #expect(try await stage.ringback("expose", "list").out.isEmpty)
        }
    }

    @Test func `needs a name, an account and a span that make sense`() async throws {
        try await Stage.play(Self.accounts) { stage in
            for arguments in [
                ["a/b", "--account", "mail"], ["A", "--account", "mail"], ["a"],
                ["a", "--account", "mail", "--ttl", "8"],
                ["create", "list", "--account", "mail"], ["a", "--account", "mail", "--scope", ""],
                ["a", "--account", "mail", "--allow-uid", "-1"],
            ] {
                try await stage.run("ringback", ["expose"] + arguments, status: 64)
            }
            try await stage.ringback("expose", "a", "--account", "nobody", status: 64)
            // Some of what cannot be is known to the daemon alone: it was typed all the same.
            for arguments in [
                ["--allow-uid", "65534"], ["--ttl", "0s"], ["--ttl", "53w"], ["--flatpak", "../x"],
                ["--scope", "a\"b"], ["--flatpak", "org.example.App", "--allow-uid", "7"],
            ] {
                try await stage.run("ringback", ["expose", "a", "--account", "mail"] + arguments, status: 64)
            }
            let list = try await stage.ringback("expose", "list")
            #expect(list.out.isEmpty)
        }
    }
}

@Suite struct `Behind a restricted socket` {
    @Test func `the doctor says what is served, and nothing of the machine that it is asked on`() async throws {
        try await Stage.play { stage in
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
        try await Stage.play { stage in
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
}
