import OAuth
import RingbackBase
import Testing

private func server(_ url: String = "https://mcp.example/tenant/mcp") throws -> MCPServer {
    try MCPServer(parsing: url)
}

private func pointing(to url: String) -> BearerChallenge? {
    BearerChallenge(in: HTTPFields([("WWW-Authenticate", #"Bearer resource_metadata="\#(url)""#)]))
}

private func document(_ members: [(String, JSON?)] = []) -> HTTPResponse {
    var object = JSONObject([
        .init("resource", "https://mcp.example/tenant/mcp"), .init("authorization_servers", ["https://id.example"]),
    ])
    for (name, value) in members { object[name] = value }
    return HTTPResponse(status: 200, body: Secret(bytes: JSON.object(object).serialized()))
}

@Suite struct `An MCP server` {
    @Test(arguments: [
        ("HTTPS://MCP.Example:443/", "https://mcp.example"), ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example/mcp", "https://mcp.example/mcp"),
        ("https://mcp.example/Mcp/", "https://mcp.example/Mcp/"),
        ("http://127.0.0.1:8000/mcp?a=b", "http://127.0.0.1:8000/mcp?a=b"),
    ]) func `has a canonical identifier`(url: String, resource: String) throws {
        #expect(try server(url).resource == resource)
    }

    @Test(arguments: ["http://mcp.example/mcp", "https://mcp.example/mcp#x", "mcp.example", "https://a@mcp.example/"])
    func `has a URL that tokens may be sent to`(url: String) {
        #expect(throws: OAuthError.self) { try MCPServer(parsing: url) }
    }

    @Test func `is asked for metadata at its path, then at its root`() throws {
        #expect(
            try server().metadataRequests(nil).map(\.url) == [
                "https://mcp.example/.well-known/oauth-protected-resource/tenant/mcp",
                "https://mcp.example/.well-known/oauth-protected-resource",
            ])
        #expect(
            try server("https://mcp.example/").metadataRequests(nil).map(\.url) == [
                "https://mcp.example/.well-known/oauth-protected-resource"
            ])
    }

    @Test func `is asked for metadata only where its challenge says`() throws {
        let stated = "https://mcp.example/custom/metadata.json"
        #expect(try server().metadataRequests(pointing(to: stated)).map(\.url) == [stated])
    }

    @Test(arguments: [
        "http://127.0.0.1/x", "https://127.0.0.1/x", "https://localhost/x", "https://169.254.169.254/latest",
        "https://[::1]/x", "http://mcp.example/x", "https://10.0.0.1/x", "https://0x7f000001/x", "file:///etc/passwd",
    ]) func `cannot send us inside by its challenge`(url: String) throws {
        let server = try server()
        let challenge = try #require(pointing(to: url))
        #expect(throws: OAuthError.self) { try server.metadataRequests(challenge) }
    }

    @Test func `on this machine may name this machine`() throws {
        let local = try server("http://127.0.0.1:8000/mcp")
        #expect(try local.metadataRequests(pointing(to: "http://localhost:8001/x")).count == 1)
    }
}

@Suite struct `Protected-resource metadata` {
    @Test func `name the authorization servers and the scopes`() throws {
        let resource = try ProtectedResource(
            parsing: document([("scopes_supported", ["a", "b", "a", "c d", ""])]), of: server())
        #expect(resource.authorizationServers == ["https://id.example"] && resource.scopesSupported == ["a", "b"])
        #expect(resource.resource == "https://mcp.example/tenant/mcp")
    }

    @Test(arguments: [
        "https://mcp.example", "https://mcp.example/", "https://mcp.example/tenant", "https://mcp.example/tenant/",
        "HTTPS://MCP.example/tenant/mcp",
    ]) func `may be about the server's host, or a path above it`(stated: String) throws {
        let resource = try ProtectedResource(parsing: document([("resource", .string(stated))]), of: server())
        // It is what the authorization server knows, so it is kept byte for byte.
        #expect(resource.resource == stated)
    }

    @Test(arguments: [
        "https://other.example/tenant/mcp", "http://mcp.example/tenant/mcp", "https://mcp.example/tenant/m",
        "https://mcp.example/tenant/mcp/x", "https://mcp.example:8443/tenant/mcp", "https://mcp.example/tenant/mcp?a",
        "https://mcp.example/tenant/mcp#a", "mcp", "",
    ]) func `about another server are refused`(stated: String) throws {
        let server = try server()
        #expect(throws: OAuthError.self) {
            try ProtectedResource(parsing: document([("resource", .string(stated))]), of: server)
        }
    }

    @Test(
        arguments: [nil, [], ["http://id.example"], ["https://127.0.0.1:9"], ["https://id.example/?a"], [1]] as [JSON?])
    func `without an authorization server that may be asked are refused`(stated: JSON?) throws {
        let server = try server()
        #expect(throws: OAuthError.self) {
            try ProtectedResource(parsing: document([("authorization_servers", stated)]), of: server)
        }
    }

    @Test(arguments: [404, 401, 302, 503, 204]) func `come with status 200`(status: Int) throws {
        let server = try server()
        var response = document()
        response.status = status
        #expect(throws: OAuthError.self) { try ProtectedResource(parsing: response, of: server) }
    }

    @Test func `may be missing on a server that is its own authorization server`() throws {
        let resource = ProtectedResource(ofServerWithout: try server())
        #expect(resource.authorizationServers == ["https://mcp.example"])
    }
}

@Suite struct `Metadata of an MCP server's issuer` {
    @Test(arguments: [
        (
            "https://id.example",
            [
                "https://id.example/.well-known/oauth-authorization-server",
                "https://id.example/.well-known/openid-configuration",
            ]
        ),
        (
            "https://id.example/tenant1",
            [
                "https://id.example/.well-known/oauth-authorization-server/tenant1",
                "https://id.example/.well-known/openid-configuration/tenant1",
                "https://id.example/tenant1/.well-known/openid-configuration",
            ]
        ),
    ]) func `are looked for in the protocol's order`(issuer: String, places: [String]) throws {
        #expect(try ProviderMetadata.discoveryRequests(issuer: issuer, order: .mcp).map(\.url) == places)
    }

    @Test(arguments: [(#"["plain","S256"]"#, true), (#"["plain"]"#, false), (nil, false)])
    func `must announce S256`(methods: String?, isTaken: Bool) throws {
        let stated = methods.map { #","code_challenge_methods_supported":\#($0)"# } ?? ""
        let body = """
            {"issuer":"https://id.example","authorization_endpoint":"https://id.example/a",\
            "token_endpoint":"https://id.example/t"\(stated)}
            """
        let response = HTTPResponse(status: 200, body: Secret(body))
        let metadata = try? ProviderMetadata(parsing: response, issuer: "https://id.example")
        #expect((metadata?.announcesPKCE ?? false) == isTaken)
    }
}

@Suite struct `A client-id metadata document` {
    @Test func `is at an https URL with a path`() throws {
        try ClientMetadataDocument.check("https://apps.example/ringback.json")
    }

    @Test(arguments: [
        "http://apps.example/a", "https://apps.example", "https://apps.example/", "https://a.example/b#c", "",
    ])
    func `is nowhere else`(url: String) {
        #expect(throws: OAuthError.self) { try ClientMetadataDocument.check(url) }
    }
}
