import Glibc
import OAuth
import RingbackBase
import Testing

@testable import Configuration

@Suite struct `A service's account` {
    private static let oidc = "issuer = \"https://id.example.org\"\nclient_id = \"c\"\n"
    private static let secret = "client_secret = \"hush\"\n"

    @Test func `by client credentials asks for no more than it is told`() throws {
        let lines = Self.oidc + Self.secret + "grant = \"client_credentials\"\naudience = \"https://api.example\""
        let account = try account(lines)
        #expect(account?.service?.grant == .clientCredentials)
        #expect(account?.service?.audience == "https://api.example")
        #expect(account?.scopes == [] && account?.redirectURIsToRegister == [])
    }

    @Test func `needs a client that proves itself for client credentials`() throws {
        #expect(try mistakes(Self.oidc + "grant = \"client_credentials\"").first?.hasPrefix("grant: ") == true)
        let none = Self.oidc + "client_authentication = \"none\"\ngrant = \"client_credentials\""
        #expect(try mistakes(none).first?.hasPrefix("grant: ") == true)
    }

    @Test(arguments: [
        "redirect_uri = \"http://127.0.0.1:1/c\"", "response_mode = \"query\"", "flow_timeout = 60",
        "authorization_params = { prompt = \"login\" }", "callback_peer_uids = [5]", "session_warnings = [60]",
        "browser = [\"firefox\"]",
        "assertion_file = \"/dev/null\"", "subject_token_type = \"jwt\"",
        "resource = \"no-uri\"", "resource = \"https://a.example#x\"",
    ])
    func `has nothing that people need, and nothing of another grant`(line: String) throws {
        let key = line.prefix { $0 != " " }
        let found = try mistakes(Self.oidc + Self.secret + "grant = \"client_credentials\"\n" + line)
        #expect(found.count == 1 && found[0].hasPrefix("\(key): "), "\(found)")
    }

    @Test(arguments: [
        "assertion_file = \"/etc/hostname\"", "subject_token_type = \"jwt\"", "audience = \"a\"",
        "resource = \"urn:a\"", "assertion_subject = \"a\"", "assertion_audience = \"a\"",
    ])
    func `is what these keys are for`(line: String) throws {
        let found = try mistakes(Self.oidc + line)
        #expect(found.count == 1 && found[0].contains("is only for service accounts (with grant)"), "\(found)")
    }

    @Test func `of a Supabase project is none`() throws {
        let lines = "provider = \"supabase\"\nurl = \"https://a.supabase.co\"\napi_key = \"k\"\ngrant = \"jwt_bearer\""
        #expect(try mistakes(lines).contains { $0.hasPrefix("grant: is for OAuth providers") })
    }

    @Test func `needs no authorization endpoint`() throws {
        let lines = Self.secret + "client_id = \"c\"\ngrant = \"client_credentials\"\n"
        let endpoints = "[accounts.mail.endpoints]\ntoken = \"https://id.example/token\""
        #expect(try account(lines + endpoints)?.provider.endpoints?.tokenEndpoint == "https://id.example/token")
        #expect(try !mistakes("client_id = \"c\"\n" + endpoints).isEmpty)
    }

    @Test func `that is a mistyped grant is not a person's`() throws {
        let found = try mistakes(Self.oidc + Self.secret + "grant = \"client_credential\"\naudience = \"a\"")
        #expect(found.count == 1 && found[0].contains("did you mean \"client_credentials\""), "\(found)")
    }

    @Test func `by an assertion need not name a client`() throws {
        let folder = try Folder()
        let token = try folder.write("a.b.c\n", to: "token")
        for grant in ["jwt_bearer", "token_exchange"] {
            try folder.write(
                "[accounts.mail]\nissuer = \"https://id.example.org\"\ngrant = \"\(grant)\"\nassertion_file = \"\(token)\"\n"
            )
            let account = try folder.load()["mail"]
            #expect(account?.clientID == "" && account?.service?.subjectTokenType == .jwt)
            #expect(try account?.readAssertion(user: Folder.user)?.text == Secret("a.b.c"))
            try folder.write("d.e.f", to: "token")
            #expect(try account?.readAssertion(user: Folder.user)?.text == Secret("d.e.f"))
            try folder.write("a.b.c", to: "token")
        }
    }

    @Test func `by an assertion of its own has a key, but no assertion file`() throws {
        let folder = try Folder()
        // RFC 8037 appendix A.1.
        let key = """
            {"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",\
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
            """
        let file = try folder.write(key, to: "key.jwk")
        let lines = "[accounts.mail]\n\(Self.oidc)grant = \"self_issued_jwt\"\nclient_key_file = \"\(file)\"\n"
        try folder.write(lines)
        let account = try folder.load()["mail"]
        #expect(account?.service?.grant == .selfIssuedJWT && account?.clientKeyFile == file)
        #expect(account?.service?.issued == SelfIssuedAssertion() && account?.service?.assertionFile == nil)
        try folder.write(lines + "assertion_subject = \"ada\"\nassertion_audience = \"id.example.org\"\n")
        let issued = SelfIssuedAssertion(subject: "ada", audience: "id.example.org")
        #expect(try folder.load()["mail"]?.service?.issued == issued)
        try folder.write(lines + "assertion_file = \"/dev/null\"\n")
        let errors = folder.report().errors
        #expect(errors.map(\.key) == ["accounts.mail.assertion_file"] && errors.first?.line == 6, "\(errors)")
    }

    @Test func `by a SAML assertion reads an XML element, and refuses what is none or open to others`() throws {
        let folder = try Folder()
        let file = try folder.write("<a>\n</a>\n", to: "token")
        try folder.write(
            "[accounts.mail]\nissuer = \"https://id.example.org\"\ngrant = \"saml2_bearer\"\n"
                + "assertion_file = \"\(file)\"\n")
        let account = try folder.load()["mail"]
        #expect(account?.service?.grant == .samlBearer && account?.clientID == "")
        #expect(try account?.readAssertion(user: Folder.user)?.text == Secret("PGE-CjwvYT4"))
        try folder.write("a.b.c", to: "token")
        #expect(folder.report().errors.map(\.key) == ["accounts.mail.assertion_file"])
        try folder.write("<a/>", to: "token", mode: 0o644)
        #expect(folder.report().errors.map(\.cause) == [.unsafe(UnsafePath(file, .readableByOthers))])
        let error = try #require(throws: ConfigurationError.self) { try account?.readAssertion(user: Folder.user) }
        #expect(error.cause == .unsafe(UnsafePath(file, .readableByOthers)))
    }

    @Test func `refuses an assertion file that is open or no token, and awaits one that is missing`() throws {
        let folder = try Folder()
        func found() -> [String] { folder.report().errors.map(\.description) }
        let lines =
            "[accounts.mail]\nissuer = \"https://id.example.org\"\ngrant = \"jwt_bearer\"\n"
            + "assertion_file = \"\(folder.path)/token\"\n"
        try folder.write(lines)
        for content in [nil, ""] {
            if let content { try folder.write(content, to: "token") }
            #expect(found() == [])
            let notes = try folder.load().accounts.flatMap(\.notes)
            #expect(notes.contains { $0.contains("The file \(folder.path)/token holds no token yet") }, "\(notes)")
            #expect(throws: ConfigurationError.self) { try folder.load()["mail"]?.readAssertion(user: Folder.user) }
        }
        try folder.write("a b", to: "token")
        #expect(found().count == 1 && found()[0].contains("holds no token"), "\(found())")
        try folder.write("a.b.c", to: "token", mode: 0o644)
        let cause = ConfigurationError.Cause.unsafe(UnsafePath("\(folder.path)/token", .readableByOthers))
        #expect(folder.report().errors.map(\.cause) == [cause])
        try folder.write("a.b.c", to: "token", mode: 0o600)
        #expect(found() == [])
    }

    /// As a Kubernetes volume lays its files out: a link to a file below a link to a directory that is exchanged whole.
    @Test func `follows a projected token as it rotates`() throws {
        let folder = try Folder()
        try folder.makeDirectory("..1")
        try folder.makeDirectory("..2")
        try folder.write("one", to: "..1/token", mode: 0o600)
        try folder.write("two", to: "..2/token", mode: 0o600)
        #expect(unsafe symlink("..1", "\(folder.path)/..data") == 0)
        #expect(unsafe symlink("..data/token", "\(folder.path)/token") == 0)
        try folder.write(
            "[accounts.mail]\nissuer = \"https://id.example.org\"\ngrant = \"jwt_bearer\"\n"
                + "assertion_file = \"\(folder.path)/token\"\n")
        let account = try folder.load()["mail"]
        #expect(try account?.readAssertion(user: Folder.user)?.text == Secret("one"))
        #expect(unsafe symlink("..2", "\(folder.path)/..tmp") == 0)
        #expect(unsafe rename("\(folder.path)/..tmp", "\(folder.path)/..data") == 0)
        #expect(try account?.readAssertion(user: Folder.user)?.text == Secret("two"))
    }

    @Test func `may have its secret from a credential, which the daemon alone looks for`() throws {
        let lines = Self.oidc + "grant = \"client_credentials\"\nclient_secret_credential = \"ci-secret\""
        let account = try account(lines)
        #expect(account?.clientSecretCredential == "ci-secret")
        #expect(try account?.readClientSecret(user: Folder.user) == nil)
        for directory in ["$CREDENTIALS_DIRECTORY", "${CREDENTIALS_DIRECTORY}"] {
            let file = Self.oidc + "client_secret_file = \"\(directory)/ci-secret\""
            #expect(try ConfigurationTests.account(file)?.clientSecretCredential == "ci-secret")
            #expect(try !mistakes(file + "\nclient_secret = \"x\"").isEmpty)
        }
        for path in ["/dev/fd/3", "/proc/self/fd/3"] {
            let found = try mistakes(Self.oidc + "client_secret_file = \"\(path)\"")
            #expect(found.count == 1 && found[0].contains("--credential-fd"), "\(found)")
        }
        for name in ["", "a/b", "..", "a b"] {
            let found = try mistakes(Self.oidc + "client_secret_credential = \"\(name)\"")
            #expect(found.count == 1 && found[0].hasPrefix("client_secret_credential: "), "\(found)")
        }
    }

    @Test func `whose credential would not be had is told so by a check that knows what is given`() throws {
        let lines = Self.oidc + "grant = \"client_credentials\"\nclient_secret_credential = \"ci-secret\"\n"
        let folder = try Folder()
        try folder.write("[accounts.mail]\n" + lines)
        var place = folder.place()
        #expect(ConfigurationReport(of: place).isValid)
        place.credentials = GivenCredentials(directory: folder.path, names: [])
        for (content, word) in [(nil, "does not exist"), ("\n", "is empty")] {
            if let content { try folder.write(content, to: "ci-secret") }
            let errors = ConfigurationReport(of: place).errors
            #expect(errors.count == 1 && errors[0].key == "accounts.mail.client_secret_credential", "\(errors)")
            #expect(errors.first?.message.contains(word) == true && errors.first?.line ?? 0 > 1, "\(errors)")
        }
        try folder.write("hush\n", to: "ci-secret")
        #expect(ConfigurationReport(of: place).isValid)
        place.credentials = GivenCredentials(directory: "\(folder.path)/none", names: ["ci-secret"])
        #expect(ConfigurationReport(of: place).isValid)
    }

    @Test func `names the line of the key whose file went, not of the account`() throws {
        let folder = try Folder()
        try folder.write("one", to: "token")
        let text = "[accounts.mail]\nissuer = \"https://id.example.org\"\ngrant = \"jwt_bearer\"\n"
        try folder.write(text + "assertion_file = \"\(folder.path)/token\"\n")
        let account = try folder.load()["mail"]
        #expect(unsafe unlink("\(folder.path)/token") == 0)
        let error = #expect(throws: ConfigurationError.self) { try account?.readAssertion(user: Folder.user) }
        #expect(error?.line == 4 && error?.key == "accounts.mail.assertion_file")
    }

    @Test func `is shown without anything to register`() throws {
        let folder = try Folder()
        try folder.write("[accounts.mail]\n" + Self.oidc + Self.secret + "grant = \"client_credentials\"\n")
        #expect(try folder.load().accounts.map(\.registration) == ["no sign-in"])
    }
}

@Suite struct `A credential's file` {
    @Test func `is read without its last newline, and only if it is closed to others`() throws {
        let folder = try Folder()
        try folder.write("hush\n", to: "ci", mode: 0o400)
        #expect(try CredentialFile.read("ci", in: folder.path, user: Folder.user) == Secret("hush"))
        try folder.write("hush\n", to: "open", mode: 0o644)
        #expect(throws: ConfigurationError.self) {
            try CredentialFile.read("open", in: folder.path, user: Folder.user)
        }
        #expect(throws: ConfigurationError.self) {
            try CredentialFile.read("none", in: folder.path, user: Folder.user)
        }
    }

    /// Root's to decide who reads it; the mount of a container shows it so.
    @Test(.enabled(if: getuid() == 0)) func `that root gave may be readable by others`() throws {
        let folder = try Folder()
        let file = try folder.write("hush", to: "ci", mode: 0o444)
        try folder.own(file, by: 0)
        #expect(try CredentialFile.read("ci", in: folder.path, user: Folder.user) == Secret("hush"))
    }
}
