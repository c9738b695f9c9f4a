import Configuration
import RingbackBase
import Testing

@Suite struct `Origins in the configuration` {
    private static let accounts = """
        [accounts.work]
        issuer = "https://id.example.org"
        client_id = "c"

        [accounts.app]
        provider = "supabase"
        url = "https://abcdefgh.supabase.co"
        api_key = "sb_publishable_x"

        """

    private func origins(_ text: String) throws -> [OriginConfiguration] {
        let folder = try Folder()
        try folder.write(Self.accounts + text)
        return try folder.load().origins
    }

    private func mistakes(_ text: String) throws -> [String] {
        try ConfigurationTests.mistakes(inFile: Self.accounts + text)
    }

    @Test func `come in the order of the file, with all that they may have`() throws {
        let found = try origins(
            """
            [[origin]]
            url = "https://git.example.org/*"
            account = "work"

            [[origin]]
            url = "https://git.example.org/team/"
            account = "work"
            match_username = "ada"
            scope = "read  write"
            audience = "git"
            resource = "https://git.example.org"
            username = "oauth2"
            header = "X-Token: {token}"
            without_scheme = true

            [[origin]]
            url = "https://abcdefgh.supabase.co"
            account = "app"
            header = ["Authorization: Bearer {token}", "apikey: {api_key}"]

            [[origin]]
            url = "https://cluster.example.org"
            account = "work"
            kind = "id_token"
            """)
        #expect(
            found.map(\.rule.pattern.text) == [
                "https://git.example.org/*", "https://git.example.org/team/*", "https://abcdefgh.supabase.co/*",
                "https://cluster.example.org/*",
            ])
        #expect(found[0].headers == [.usual] && found[0].kind == .accessToken && found[0].scopes == nil)
        #expect(found[1].rule.username == "ada" && found[1].scopes == ["read", "write"])
        #expect(found[1].audience == "git" && found[1].resource == "https://git.example.org")
        #expect(found[1].username == "oauth2" && found[1].headers.map(\.text) == ["X-Token: {token}"])
        #expect(found[2].headers.map(\.name) == ["Authorization", "apikey"])
        #expect(found[3].kind == .idToken && found[3].source.line == 29)
        #expect(found.map(\.allowed.withoutScheme) == [false, true, false, false])
    }

    @Test func `that no lookup could tell apart are a mistake, with both lines`() throws {
        let one = "[[origin]]\nurl = \"https://git.example.org/*\"\naccount = \"work\"\n"
        let same = "[[origin]]\nurl = \"https://Git.example.org:443\"\naccount = \"app\"\n"
        let found = try mistakes(one + same)
        #expect(found.count == 1 && found[0].hasPrefix("12 origin: ") && found[0].contains("line 9 of"), "\(found)")
        #expect(try mistakes(one + same + "match_username = \"ada\"\n").isEmpty)
        let twice = one + "match_username = \"ada\"\n" + same + "match_username = \"ada\"\n"
        #expect(try mistakes(twice).first?.contains("the same match_username") == true)
    }

    @Test func `of an account that is not there, or without a key where one is needed, are a mistake`() throws {
        let origin = "[[origin]]\nurl = \"https://git.example.org/*\"\n"
        #expect(try mistakes(origin + "account = \"wrok\"\n").first?.contains("did you mean work?") == true)
        let keyed = origin + "account = \"work\"\nheader = [\"a: {token}\", \"b: {api_key}\"]\n"
        #expect(try mistakes(keyed).first?.contains("{api_key}") == true)
        let named = origin + "account = \"work\"\nheader = \"a: {token}{username}\"\n"
        #expect(try mistakes(named).first?.contains("set username too") == true)
    }

    @Test func `the TLS settings that are allowed have one form, and a wrong value is a mistake at its key`() throws {
        let origin = "[[origin]]\nurl = \"https://k8s.example.org/*\"\naccount = \"work\"\n"
        let digest = String(repeating: "ab", count: 32)
        let allowed = try #require(
            origins(
                origin
                    + """
                    ca_sha256 = ["\(digest.uppercased())", "\(digest)"]
                    tls_server_name = "K8s.Internal"
                    insecure_skip_tls_verify = true
                    proxy_url = ["http://ada:pw@Proxy:3128/", "socks5://127.0.0.1:1080"]
                    """
            ).first?.allowed)
        #expect(allowed.authorities == [digest] && allowed.serverNames == ["k8s.internal"])
        #expect(allowed.skipsVerification && !allowed.withoutScheme)
        #expect(allowed.proxies == ["http://proxy:3128", "socks5://127.0.0.1:1080"])
        for (line, key) in [
            ("ca_sha256 = \"abc\"", "ca_sha256"), ("ca_sha256 = [\"\(digest)\", \"x\"]", "ca_sha256"),
            ("tls_server_name = \"a b\"", "tls_server_name"), ("proxy_url = \"proxy:3128\"", "proxy_url"),
            ("insecure_skip_tls_verify = \"yes\"", "insecure_skip_tls_verify"),
        ] {
            let found = try mistakes(origin + line + "\n")
            #expect(found.count == 1 && found[0].contains(key), "\(line) \(found)")
        }
    }

    @Test func `do not come with a package`() throws {
        let folder = try Folder()
        try folder.write(Self.accounts)
        try folder.makeDirectory("accounts.d")
        try folder.write(
            "[[origin]]\nurl = \"https://evil.example/*\"\naccount = \"work\"\n", to: "accounts.d/package.toml")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }

    @Test func `are in the report`() throws {
        let folder = try Folder()
        try folder.write(
            Self.accounts + "[[origin]]\nurl = \"https://git.example.org/*\"\naccount = \"work\"\nscope = \"a\"\n")
        let report = folder.report()
        #expect(
            report.json.contains(
                #""origins":[{"url":"https://git.example.org/*","account":"work","scope":"a","kind":"access_token","#
                    + #""headers":["Authorization: Bearer {token}"],"source":{"file":"\#(folder.path)/config.toml","line":9}}]"#
            ))
    }
}
