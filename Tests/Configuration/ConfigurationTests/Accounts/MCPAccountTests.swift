import OAuth
import Testing

@testable import Configuration

@Suite struct `An account at an MCP server` {
    private func account(_ lines: String) throws -> AccountConfiguration? {
        let folder = try Folder()
        try folder.write("[accounts.linear]\n\(lines)\n")
        return try folder.load().accounts.first
    }

    private func server(_ lines: String) throws -> MCPConfiguration? {
        guard case .mcp(let server)? = try account(lines)?.provider else { return nil }
        return server
    }

    @Test func `needs its URL alone`() throws {
        let account = try #require(try account(#"mcp = "https://mcp.linear.example/mcp""#))
        #expect(account.provider.word == "mcp" && account.clientID.isEmpty && account.scopes.isEmpty)
        // A client that the issuer registers may have a secret, so the issuer's metadata decide how it is sent.
        #expect(account.redirectURIsToRegister == [] && account.clientAuthentication == nil)
        #expect(account.notes.contains { $0.contains("is found by asking") })
        guard case .mcp(let server) = account.provider else { throw Unexpected() }
        #expect(server.server.resource == "https://mcp.linear.example/mcp" && server.sendsResource)
        #expect(server.issuer == nil && server.clientMetadataURL == nil)
    }

    @Test func `may have a client of its own, with the issuer that registered it`() throws {
        let lines = """
            mcp = "https://mcp.example/mcp"
            issuer = "https://id.example"
            client_id = "mine"
            resource_parameter = false
            sign_in = false
            """
        let found = try #require(try account(lines))
        #expect(found.clientID == "mine" && found.redirectURIsToRegister == ["http://127.0.0.1:{port}/callback/linear"])
        let server = try #require(try server(lines))
        #expect(server.issuer == "https://id.example" && !server.sendsResource && !server.needsSignIn)
    }

    @Test func `may have a client-id metadata document`() throws {
        let server = try server(
            "mcp = \"https://mcp.example\"\nclient_id_metadata_url = \"https://apps.example/ringback.json\"")
        #expect(server?.clientMetadataURL == "https://apps.example/ringback.json")
    }

    private static let service = """
        mcp = "https://mcp.example/mcp"
        issuer = "https://id.example"
        client_id = "robot"
        client_secret = "hush"
        grant = "client_credentials"

        """

    @Test func `may be a service's, with the issuer that may have its secret`() throws {
        let found = try #require(try account(Self.service + "scopes = [\"mcp:read\"]\naudience = \"mcp\""))
        #expect(found.service?.grant == .clientCredentials && found.service?.audience == "mcp")
        #expect(found.clientID == "robot" && found.registration == "no sign-in")
        #expect(!found.notes.contains { $0.contains("at each sign-in") })
        let unpinned = Self.service.replacing("issuer = \"https://id.example\"\n", with: "")
        #expect(try mistakes(unpinned).contains { $0.hasPrefix("grant: needs issuer with mcp") })
    }

    @Test(arguments: [
        "client_id_metadata_url = \"https://apps.example/r.json\"", "sign_in = false",
        "resource = \"https://mcp.example\"",
        "redirect_uri = \"http://127.0.0.1:1/c\"",
    ]) func `has nothing of a sign-in as a service's, and no other resource`(line: String) throws {
        let found = try mistakes(Self.service + line)
        #expect(found.count == 1 && found[0].hasPrefix("\(line.prefix { $0 != " " }): "), "\(found)")
    }

    @Test func `of a service needs a client that proves itself, or an assertion`() throws {
        let open = Self.service.replacing("client_secret = \"hush\"\n", with: "")
        #expect(try mistakes(open).contains { $0.contains("needs client authentication") })
        let unnamed = Self.service.replacing("client_id = \"robot\"\n", with: "")
        #expect(try mistakes(unnamed).contains { $0.hasPrefix("client_secret: belongs to a client_id") })
        let workload = """
            mcp = "https://mcp.example/mcp"
            issuer = "https://id.example"
            grant = "jwt_bearer"
            assertion_file = "/nonexistent/token"
            """
        let found = try #require(try account(workload))
        #expect(found.clientID.isEmpty && found.clientAuthentication == ClientAuthentication.none)
    }
}

@Suite struct `An account through another one's sign-in` {
    private static let linear = """
        [accounts.linear]
        mcp = "https://mcp.example/mcp"
        issuer = "https://id.mcp.example"
        client_id = "at-linear"
        client_secret = "hush"
        through = "work"

        """
    private static let work = "[accounts.work]\nissuer = \"https://id.example\"\nclient_id = \"c\"\n"

    private func found(_ text: String) throws -> [String] {
        let folder = try Folder()
        try folder.write(text)
        return folder.report().errors.map { "\($0.key ?? ""): \($0.message)" }
    }

    @Test func `names that one, and has a client of its own`() throws {
        let folder = try Folder()
        try folder.write(Self.linear + Self.work)
        let linear = try #require(try folder.load()["linear"])
        #expect(linear.service?.through == "work" && linear.service?.grant == .jwtBearer)
        #expect(linear.clientID == "at-linear" && linear.scopes == [] && linear.registration == "no sign-in")
        #expect(linear.notes.contains { $0.contains("through the sign-in of work") }, "\(linear.notes)")
        #expect(try !linear.hasSameSettings(as: #require(try folder.load()["work"])))
    }

    @Test(arguments: [
        ("issuer = \"https://id.mcp.example\"\n", "accounts.linear.through: needs issuer with mcp"),
        ("client_id = \"at-linear\"\nclient_secret = \"hush\"\n", "accounts.linear.through: needs client_id"),
        ("mcp = \"https://mcp.example/mcp\"\n", "accounts.linear.through: belongs to mcp"),
    ]) func `needs these`(lines: String, text: String) throws {
        let errors = try found(Self.linear.replacing(lines, with: "") + Self.work)
        #expect(errors.contains { $0.hasPrefix(text) }, "\(errors)")
    }

    @Test(arguments: [
        "grant = \"client_credentials\"", "assertion_file = \"/t\"", "audience = \"a\"",
        "resource = \"https://a.example\"",
        "redirect_uri = \"http://127.0.0.1:1/c\"", "sign_in = false",
    ]) func `has nothing of a sign-in or of another grant`(line: String) throws {
        #expect(try !found(Self.linear + line + "\n" + Self.work).isEmpty)
    }

    @Test(arguments: [
        ("", "there is no account of this name"),
        ("[accounts.work]\nprovider = \"github\"\nclient_id = \"c\"\n", "has no ID tokens"),
        (
            work + "client_secret = \"hush\"\ngrant = \"client_credentials\"\n",
            "has no ID tokens: it has no sign-in of its own"
        ),
    ]) func `names an account that users sign in to at an OpenID provider`(other: String, text: String) throws {
        let errors = try found(Self.linear + other)
        #expect(errors.count == 1 && errors[0].hasPrefix("accounts.linear.through: \(text)"), "\(errors)")
        #expect(try !found(Self.linear.replacing("\"work\"", with: "\"linear\"")).isEmpty)
    }
}

private struct Unexpected: Error {}
