import Configuration
import OAuth
import Testing

@Suite struct `Accounts that share a redirect URI` {
    private static let first = """
        [accounts.first]
        issuer = "https://one.example"
        client_id = "c"

        """
    private static let second = """
        [accounts.second]
        issuer = "https://two.example"
        client_id = "c"

        """

    private func errors(_ first: String, _ second: String) throws -> [String] {
        let folder = try Folder()
        try folder.write(Self.first + first + "\n" + Self.second + second + "\n")
        return folder.report().errors.map(\.description)
    }

    @Test(
        arguments: [
            ("http://127.0.0.1:8400/callback", "http://127.0.0.1:8400/callback"),
            ("http://127.0.0.1:{port}/callback", "http://127.0.0.1:8400/callback"),
            ("http://localhost:{port}", "http://localhost:{port}"),
            ("org.example.app:/callback", "org.example.app:/callback?a=b"),
            ("http://127.0.0.1:{port}", "http://127.0.0.1:{port}/"),
            ("http://127.0.0.1:{port}/", "http://127.0.0.1:8400"),
            ("org.example.app:/callback", "org.example.app:///callback/"),
            ("org.example.app://cb", "org.example.app://cb/"),
            ("https://Example.org", "https://example.org/"),
            ("https://Example.org/done", "https://example.org/done"),
            ("http://127.0.0.1:{port}/callback/second", nil),
        ] as [(String, String?)])
    func `of different issuers are refused, with both lines`(one: String, other: String?) throws {
        let found = try errors("redirect_uri = \"\(one)\"", other.map { "redirect_uri = \"\($0)\"" } ?? "")
        #expect(found.count == 1, "\(found)")
        let text = found.first ?? ""
        #expect(text.contains("config.toml:\(other == nil ? 5 : 8)") && text.contains("config.toml:4"), "\(text)")
        #expect(text.contains("accounts.first") && text.contains("accounts.second"), "\(text)")
    }

    @Test(arguments: [
        ("http://127.0.0.1:8400/callback", "http://127.0.0.1:8401/callback"),
        ("http://127.0.0.1:{port}/one", "http://127.0.0.1:{port}/two"),
        ("http://127.0.0.1:{port}/callback", "http://[::1]:{port}/callback"),
        ("org.example.app:/one", "org.example.app:/two"), ("org.example.one:/c", "org.example.two:/c"),
    ])
    func `with another scheme, host, port or path do not share one`(one: String, other: String) throws {
        #expect(try errors("redirect_uri = \"\(one)\"", "redirect_uri = \"\(other)\"").isEmpty)
    }

    @Test func `may do so at the same issuer, and where both insist on iss`() throws {
        let uri = "redirect_uri = \"http://127.0.0.1:8400/callback\"\n"
        let insisting = uri + "authorization_response_iss = true"
        #expect(try errors(insisting, insisting).isEmpty)
        #expect(try errors(insisting, uri).count == 1)
        let folder = try Folder()
        let same = Self.second.replacing("two.example", with: "one.example")
        try folder.write(Self.first + uri + same + uri)
        #expect(folder.report().errors.isEmpty)
    }

    @Test func `do so at two directories of Microsoft unless one has a redirect_uri of its own`() throws {
        let folder = try Folder()
        let account = { (name: String, tenant: String) in
            "[accounts.\(name)]\nprovider = \"microsoft\"\ntenant = \"\(tenant)\"\nclient_id = \"c\"\n"
        }
        try folder.write(account("one", "common") + account("two", "organizations"))
        #expect(folder.report().errors.count == 1)
        try folder.write(
            account("one", "common") + account("two", "organizations")
                + "redirect_uri = \"http://localhost:{port}/callback/two\"\n")
        #expect(folder.report().errors.isEmpty)
    }
}

@Suite struct `How authorization requests are made` {
    private func mistakes(_ lines: String) throws -> [String] {
        let folder = try Folder()
        try folder.write("[accounts.a]\nclient_id = \"c\"\n\(lines)\n")
        return folder.report().errors.compactMap(\.key)
    }

    @Test func `iss needs an issuer to be compared with`() throws {
        #expect(try mistakes("issuer = \"https://id.example\"\nauthorization_response_iss = true") == [])
        #expect(
            try mistakes("provider = \"github\"\nauthorization_response_iss = true")
                == ["accounts.a.authorization_response_iss"])
    }

    @Test func `required pushed requests need an endpoint where endpoints are written by hand`() throws {
        let key = "pushed_authorization_requests"
        let hand = "[accounts.a.endpoints]\nauthorization = \"https://a.example/a\"\ntoken = \"https://a.example/t\"\n"
        for mode in ["auto", "never"] { #expect(try mistakes("\(key) = \"\(mode)\"\n" + hand) == []) }
        #expect(try mistakes("\(key) = \"required\"\n" + hand) == ["accounts.a.\(key)"])
        #expect(
            try mistakes("\(key) = \"required\"\n" + hand + "pushed_authorization_request = \"https://a.example/p\"")
                == [])
        #expect(try mistakes("\(key) = \"maybe\"\n" + hand) == ["accounts.a.\(key)"])
    }

    @Test func `tokens are bound where that is configured, and at an MCP server where it is offered`() throws {
        let folder = try Folder()
        try folder.write(
            """
            [accounts.a]
            issuer = "https://id.example"
            client_id = "c"
            [accounts.b]
            issuer = "https://id.example"
            client_id = "c"
            dpop = "refresh-only"
            [accounts.c]
            mcp = "https://mcp.example/mcp"
            [accounts.d]
            mcp = "https://mcp.example/mcp"
            dpop = "off"
            """)
        let accounts = try folder.load().accounts.sorted { $0.name < $1.name }
        #expect(accounts.map(\.dpop.rawValue) == ["off", "refresh-only", "auto", "off"])
    }

    @Test func `form_post is refused where the provider is known not to have it`() throws {
        #expect(try mistakes("provider = \"github\"\nresponse_mode = \"form_post\"") == ["accounts.a.response_mode"])
    }
}
