import Glibc
import OAuth
import RingbackBase
import Testing

@testable import Configuration

@Suite struct `The configuration` {
    private static let google = "provider = \"google\"\nclient_id = \"c\"\n"

    @Test func `reads one account of each kind`() throws {
        let folder = try Folder()
        try folder.write("hush\n", to: "google.secret")
        try folder.write(
            """
            [accounts.work]                 # OpenID Connect, by discovery
            issuer = "https://id.example.org/realms/main"
            client_id = "ringback"
            scopes = ["openid", "email", "offline_access"]

            [accounts.mail]
            provider = "google"
            client_id = "1234.apps.googleusercontent.com"
            client_secret_file = "~/google.secret"
            scopes = ["openid", "email", "https://mail.google.com/"]

            [accounts."org.swisscoin.app"]
            provider = "supabase"
            url = "https://abcdefgh.supabase.co"
            api_key = "sb_publishable_x"
            redirect_uri = "swisscoin://auth-callback"
            redirect_flow_key = "query"

            [accounts.other]
            client_id = "cli"
            client_authentication = "client_secret_basic"
            redirect_uri = "http://127.0.0.1:8400/callback"
            authorization_params = { prompt = "consent" }
            [accounts.other.endpoints]
            authorization = "https://auth.example.org/authorize"
            token = "https://auth.example.org/token"
            device_authorization = "https://auth.example.org/device"
            revocation = "https://auth.example.org/revoke"

            [vault]
            key_source = "auto"
            """)
        let configuration = try folder.load()
        #expect(configuration.accounts.map(\.name) == ["mail", "org.swisscoin.app", "other", "work"])
        #expect(configuration.accounts.map(\.provider.word) == ["google", "supabase", "oauth2", "oidc"])
        #expect(configuration.accounts.map(\.source.line) == [6, 12, 19, 1])
        #expect(configuration.vault.keySource == .auto)
        #expect(configuration.files == ["\(folder.path)/config.toml"])

        let work = try #require(configuration["work"])
        #expect(work.provider.issuer == "https://id.example.org/realms/main")
        #expect(work.clientAuthentication == ClientAuthentication.none)
        #expect(work.scopes == ["openid", "email", "offline_access"])
        #expect(work.redirectURIsToRegister == ["http://127.0.0.1:{port}/callback/work"])
        #expect(work.redirect.uri(port: 4711) == "http://127.0.0.1:4711/callback/work")
        #expect(work.flowTimeout == .seconds(600))

        let mail = try #require(configuration["mail"])
        #expect(mail.provider == .preset(.google))
        #expect(mail.clientSecret == .file(path: "\(folder.path)/google.secret"))
        #expect(try mail.readClientSecret(user: Folder.user) == Secret("hush"))
        #expect(mail.clientAuthentication == .clientSecretPost)
        #expect(mail.authorizationParameters.map(\.name) == ["access_type"])

        let app = try #require(configuration["org.swisscoin.app"])
        #expect(app.flowTimeout == .seconds(300))
        #expect(app.redirectURIsToRegister == ["swisscoin://auth-callback?*"])

        let other = try #require(configuration["other"])
        #expect(other.provider.endpoints?.tokenEndpoint == "https://auth.example.org/token")
        #expect(other.provider.endpoints?.deviceAuthorizationEndpoint == "https://auth.example.org/device")
        #expect(other.redirect.uri(port: 1) == "http://127.0.0.1:8400/callback")
        #expect(other.additionalParameters.map(\.0) == ["prompt"])
        #expect(other.scopes.isEmpty)
    }

    @Test func `no file at the default place means no accounts`() throws {
        let configuration = try Folder().load(isExplicit: false)
        #expect(configuration.accounts.isEmpty)
        #expect(configuration.vault == .standard)
        let nowhere = ConfigurationPlace(userFile: nil, isExplicit: false, dropInDirectories: [], home: nil, user: 1)
        #expect(try DaemonConfiguration.load(nowhere).accounts.isEmpty)
        let noDirectory = ConfigurationPlace(
            userFile: "/nonexistent/ringback/config.toml", isExplicit: false, dropInDirectories: ["/nonexistent/d"],
            home: nil, user: 1
        )
        #expect(try DaemonConfiguration.load(noDirectory).accounts.isEmpty)
    }

    @Test func `a named file that is missing is an error`() throws {
        let folder = try Folder()
        let errors = try #require(throws: ConfigurationErrors.self) { try folder.load() }
        #expect(errors.errors == [ConfigurationError(file: "\(folder.path)/config.toml", message: "does not exist")])
    }

    @Test func `an empty file is a configuration`() throws {
        let folder = try Folder()
        for text in ["", "\n", "# nothing\n", "[accounts]\n", "[vault]\n"] {
            try folder.write(text)
            #expect(try folder.load().accounts.isEmpty)
        }
    }

    @Test func `the later place wins, one account as a whole against another`() throws {
        let folder = try Folder()
        for directory in ["share", "etc"] { try folder.makeDirectory(directory) }
        let dropIns = ["share", "etc"]
        try folder.write(
            "[accounts.a]\n\(Self.google)flow_timeout = 11\n[accounts.b]\n\(Self.google)", to: "share/1.toml")
        try folder.write("[accounts.a]\n\(Self.google)refresh_margin = 12\n", to: "etc/1.toml")
        var configuration = try folder.load(isExplicit: false, dropIns: dropIns)
        #expect(configuration["a"]?.flowTimeout == .seconds(600))
        #expect(configuration["a"]?.refreshMargin == 12)
        #expect(configuration["a"]?.source.file == "\(folder.path)/etc/1.toml")
        try folder.write("[accounts.a]\n\(Self.google)flow_timeout = 13\n")
        configuration = try folder.load(isExplicit: false, dropIns: dropIns)
        #expect(configuration["a"]?.flowTimeout == .seconds(13))
        #expect(configuration["a"]?.refreshMargin == nil)
        #expect(configuration["b"]?.source.file == "\(folder.path)/share/1.toml")
    }

    @Test func `drop-ins are read by name, and only those that end in toml`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        for (name, timeout) in [("10-x.toml", 20), ("9-x.toml", 21), ("2-x.toml", 22)] {
            try folder.write("[accounts.a]\n\(Self.google)flow_timeout = \(timeout)\n", to: "accounts.d/\(name)")
        }
        for name in ["z.toml~", "z.txt", ".z.toml", "z.toml.bak"] {
            try folder.write("no TOML", to: "accounts.d/\(name)")
        }
        let configuration = try folder.load(isExplicit: false)
        #expect(configuration["a"]?.flowTimeout == .seconds(21))
        #expect(
            configuration.files.map { $0.split(separator: "/").last ?? "" } == ["10-x.toml", "2-x.toml", "9-x.toml"])
    }

    @Test func `every mistake of every file is reported, overruled accounts included`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        try folder.write("[accounts.a]\nissuer = 1\nclient_id = \"c\"\n", to: "accounts.d/a.toml")
        try folder.write("[accounts.b]\nx = \n", to: "accounts.d/b.toml")
        try folder.write("[accounts.a]\n\(Self.google)\n[vault]\nkey_source = \"none\"\n")
        let errors = try #require(throws: ConfigurationErrors.self) { try folder.load() }
        let lines = errors.errors.map { "\($0.file.split(separator: "/").last ?? ""):\($0.line ?? 0) \($0.key ?? "")" }
        #expect(lines == ["a.toml:2 accounts.a.issuer", "b.toml:2 ", "config.toml:6 vault.key_source"])
        #expect(errors.description.split(separator: "\n").count == 3)
    }

    @Test(
        arguments: [
            ([0x61, 0x3D, 0x22, 0x0A, 0xFF, 0x22], 2, "is not UTF-8"),
            ([0x0A, 0x0A, 0x23, 0x00], 3, "a NUL character"),
            ([0xEF, 0xBB, 0xBF, 0x78], 1, "a key must be followed by"),
        ] as [([UInt8], Int, String)])
    func `bytes that are no text are refused with their line`(bytes: [UInt8], line: Int, message: String) throws {
        let folder = try Folder()
        try folder.write(bytes, to: "config.toml")
        let errors = try #require(throws: ConfigurationErrors.self) { try folder.load() }
        #expect(errors.errors.map(\.line) == [line])
        #expect(errors.errors[0].message.hasPrefix(message))
    }

    @Test func `a huge file, and one nested without end, are refused`() throws {
        let folder = try Folder()
        try folder.write([UInt8](repeating: 0x0A, count: (1 << 20) + 1), to: "config.toml")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
        try folder.write("a = " + String(repeating: "[", count: 100_000))
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
        try folder.write("a = " + String(repeating: "{a=", count: 100_000))
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
        try folder.write((0..<5_000).map { _ in "a" }.joined(separator: ".") + " = 1")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }

    @Test func `no message repeats a value`() throws {
        let secret = "s3cr3t-value"
        for key in Self.everyKey {
            for value in [
                "\"\(secret)\"", "[\"\(secret)\"]", "{ x = \"\(secret)\" }", "{ \"\(secret.dropLast())\" = 1 }",
            ] {
                let folder = try Folder()
                try folder.write("[accounts.mail]\n\(key) = \(value)\n", mode: 0o644)
                let report = folder.report()
                // What is a name in the file may be shown: it is the key that the message is about.
                guard !value.contains("= 1") else { continue }
                #expect(!report.errors.map(\.description).joined().contains(secret), "\(key)")
                #expect(!report.json.contains(secret), "\(key)")
            }
        }
    }

    private static let everyKey = [
        "provider", "issuer", "endpoints", "tenant", "host", "api_key", "redirect_flow_key", "client_id",
        "client_secret", "client_secret_command", "client_authentication", "scopes", "redirect_uri",
        "authorization_params", "flow_timeout", "pinned_public_keys", "headers", "policy", "unknown",
    ]

    @Test func `shows notifications unless it says otherwise, and no package may say so`() throws {
        let folder = try Folder()
        try folder.write("")
        #expect(try folder.load().showsNotices)
        try folder.write("[notifications]\nenabled = false\n")
        #expect(try !folder.load().showsNotices)
        for wrong in [
            "[notifications]\nenabled = \"no\"\n", "[notifications]\nenable = true\n", "notifications = true\n",
        ] {
            try folder.write(wrong)
            #expect(throws: ConfigurationErrors.self) { try folder.load() }
        }
        try folder.write("")
        try folder.makeDirectory("accounts.d")
        try folder.write("[notifications]\nenabled = false\n", to: "accounts.d/package.toml")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }

    @Test func `an account has its own consent, else the default`() throws {
        let folder = try Folder()
        func account(_ lines: String) -> String {
            "[accounts.a]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n\(lines)\n"
        }
        func consent(_ text: String) throws -> ConsentMode? {
            try folder.write(text)
            let loaded = try folder.load()
            return loaded.accounts.first.map(loaded.consent)
        }
        #expect(try consent(account("")) == .allow)
        #expect(try consent(account("") + "[consent]\ndefault = \"notify\"\n") == .notify)
        #expect(try consent(account("consent = \"ask\"") + "[consent]\ndefault = \"deny\"\n") == .ask)
        #expect(try consent(account("programs = [\"/usr/bin/git\", \"unit:backup.service\"]")) == .allow)
        #expect(try folder.load().accounts.first?.programs == ["/usr/bin/git", "unit:backup.service"])
        for wrong in [
            "consent = \"maybe\"", "programs = [\"git\"]", "programs = [\"unit:backup\"]",
            "programs = \"/usr/bin/git\"",
            "programs = [\"unit:a/b.service\"]",
            "consent = \"deny\"\n[[expose]]\nname = \"ci\"\naccount = \"a\"",
            "consent = \"deny\"\n[[file]]\npath = \"/run/t\"\naccount = \"a\"",
        ] {
            try folder.write(account(wrong))
            #expect(throws: ConfigurationErrors.self, "\(wrong)") { try folder.load() }
        }
    }

    /// The processor time grows with the file and not with its square: 16 times as large takes about 16 times as long,
    /// and with the square it would be 256 times. The limit leaves room for noise.
    @Test(
        .timeLimit(.minutes(2)),
        arguments: [
            (
                "[accounts.a]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n[accounts.a.headers]\n",
                "X-# = \"v\"\n"
            ),
            ("", "[accounts.a#]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n"),
            (
                "",
                "[accounts.a#]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n"
                    + "redirect_uri = \"http://127.0.0.1:{port}/callback\"\n"
            ),
            (
                "",
                "[accounts.a#]\nissuer = \"https://id#.example\"\nclient_id = \"c\"\n"
                    + "authorization_response_iss = true\nredirect_uri = \"http://127.0.0.1:9000/callback\"\n"
            ),
            (
                "[accounts.a]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n",
                "[[expose]]\nname = \"e#\"\naccount = \"a\"\n"
            ),
            ("", "k# = 1\n"),
        ])
    func `a file of a mebibyte is read in a time that grows with its size, whatever is in it`(
        head: String, line: String
    ) async throws {
        let small = try (0..<3).map { _ in try cost(of: head, line, 64 << 10) }.min() ?? .zero
        let large = try cost(of: head, line, 1 << 20)
        #expect(large < small * 80, "\(large) for 16 times as much as in \(small)")
    }

    /// The processor time of reading a file of almost `size` bytes: the head, and the line with a number in place of `#`
    /// again and again. The time of this thread does not grow while others use the machine.
    private func cost(of head: String, _ line: String, _ size: Int) throws -> Duration {
        let folder = try Folder()
        var text = head
        var number = 0
        while text.utf8.count < size - 200 {
            text += line.replacing("#", with: String(number))
            number += 1
        }
        try folder.write(text, to: "config.toml")
        func now() -> Duration {
            var time = timespec()
            unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let start = now()
        do {
            #expect(try folder.load().accounts.isEmpty == false)
        } catch let errors as ConfigurationErrors {
            // Not every mistake of thousands is of use.
            #expect((1...300).contains(errors.errors.count))
            #expect(!line.hasPrefix("k") || errors.errors.last?.message.contains("more mistakes") == true)
        }
        return now() - start
    }
}
