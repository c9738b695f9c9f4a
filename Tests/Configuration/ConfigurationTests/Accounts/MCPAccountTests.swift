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
}

private struct Unexpected: Error {}
