import RingbackBase
import Testing

/// Accounts at MCP servers (Tests/Programs/mcp_server.py), whose authorization server is the sandbox.
@Suite struct `An account from the URL of an MCP server` {
    private func startServer(_ stage: Stage, _ announced: String) async throws -> (program: Program, url: String) {
        try await MCPStandIn.start(stage, announced)
    }

    private func requests(_ stage: Stage, _ endpoint: String, issuer: String = "") async throws -> [JSON] {
        try await stage.sandbox.log(issuer: issuer).filter { $0["endpoint"]?.string == endpoint }
    }

    @Test func `needs nothing but the URL`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(
                stage, #"{"issuers":["{sandbox}"],"scopes":["mcp:read","mcp:write"],"challenge":"mcp:read"}"#)
            let added = try await stage.ringback("account", "add", "linear", "--mcp", server.url, status: 0)
            #expect(!added.out.contains("Register at the provider"))
            #expect(
                FileTree.text(of: "\(stage.dropIns)/linear.toml")?.contains("mcp = \"\(server.url)\"") == true)
            let account = try await stage.api("GET", "/v1/accounts/linear")
            let host = account["provider_host"]?.string ?? "no host"
            #expect(server.url.hasPrefix("http://\(host)/"), "\(account)")
            // Adding it registers nothing.
            #expect(try await requests(stage, "registration").isEmpty)
            try await stage.signIn("linear")
            let token = try #require(try await stage.token("linear"))
            #expect(token.hasPrefix("at-"))
            #expect(try await stage.api("POST", "/v1/accounts/linear/refresh", ["force": true]).status == 200)
            #expect(try await stage.token("linear") != token)

            let authorization = try #require(try await requests(stage, "authorize").first?["parameters"])
            #expect(authorization["resource"]?.string == server.url)
            #expect(authorization["scope"] == "mcp:read offline_access")
            let tokens = try await requests(stage, "token").compactMap { $0["parameters"] }
            #expect(tokens.count == 2 && tokens.allSatisfy { $0["resource"]?.string == server.url })
            let registered = try #require(try await requests(stage, "registration").first?["document"])
            #expect(registered["application_type"] == "native")
            #expect(registered["redirect_uris"]?.array?.first == authorization["redirect_uri"])

            // The session and its client outlive the daemon.
            try await stage.stopDaemon()
            try await stage.startDaemon()
            #expect(try await stage.api("POST", "/v1/accounts/linear/refresh", ["force": true]).status == 200)
            #expect(try await requests(stage, "registration").count == 1)
            // No token of the issuer was shown to the server that only announces.
            #expect(!server.program.output.value.text.contains(" token"))
        }
    }

    /// The metadata of an authorization server that registers no clients, and takes documents.
    private func documents(_ members: String) -> String {
        #"""
        {"issuers":["{origin}"],"documents":{"/.well-known/oauth-authorization-server":{"issuer":"{origin}",
        "authorization_endpoint":"{origin}/authorize","token_endpoint":"{origin}/token",
        "response_types_supported":["code"],"code_challenge_methods_supported":["S256"],
        "client_id_metadata_document_supported":true\#(members)}}}
        """#
    }

    @Test func `says which document to host, and what to type then`() async throws {
        try await Stage.play("") { stage in
            let announced = documents(#","authorization_response_iss_parameter_supported":true"#)
            let server = try await startServer(stage, announced)
            let refused = try await stage.ringback("account", "add", "linear", "--mcp", server.url, status: 78)
            let start = try #require(refused.err.firstIndex(of: "{"))
            let end = try #require(refused.err.lastIndex(of: "}"))
            let url = "https://www.example.org/ringback.json"
            let printed = try await stage.ringback("client-metadata", url)
            #expect(try JSON(parsing: refused.err[start...end].utf8) == JSON(parsing: printed.out.utf8))
            let command = "ringback account add linear --mcp=\(server.url) --client-id-metadata-url=\(url)"
            #expect(refused.err.contains("Then run: \(command)"), "\(refused)")
            #expect(FileTree.text(of: "\(stage.dropIns)/linear.toml") == nil)
            try await stage.run("ringback", command.split(separator: " ").dropFirst().map(String.init), status: 0)
            let text = FileTree.text(of: "\(stage.dropIns)/linear.toml") ?? ""
            #expect(text.contains("client_id_metadata_url = \"\(url)\""))
            let flow = try await stage.begin("linear")
            #expect(flow.authorizationURL.contains("client_id=https%3A%2F%2Fwww.example.org%2Fringback.json"))
        }
    }

    @Test func `wants a redirect URI of its own where responses do not name the issuer`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(stage, documents(""))
            let url = "https://apps.example.org/ringback.json"
            try await stage.ringback(
                "account", "add", "linear", "--mcp", server.url, "--client-id-metadata-url", url, status: 78,
                says: "RFC 9207", #""http://127.0.0.1/callback/linear""#)
            try await stage.ringback(
                "account", "add", "linear", "--mcp", server.url, "--client-id-metadata-url", url, "--redirect-uri",
                "http://127.0.0.1:{port}/callback/linear", status: 0)
            let flow = try await stage.begin("linear")
            #expect(flow.authorizationURL.contains("%2Fcallback%2Flinear"), "\(flow.authorizationURL)")
        }
    }

    @Test(arguments: [
        (401, "refuses the token", "ringback login linear --again"),
        (403, "wants more scopes", "ringback login linear --scopes='mcp:read offline_access mcp:admin'"),
    ]) func `has its token tried by the doctor, as a bridge would`(status: Int, text: String, command: String)
        async throws
    {
        try await Stage.play("") { stage in
            let announced = #"{"issuers":["{sandbox}"],"scopes":["mcp:read"]"#
            let server = try await startServer(stage, announced + "}")
            try await stage.ringback("account", "add", "linear", "--mcp", server.url, status: 0)
            try await stage.signIn("linear")
            let fine = try await stage.ringback("doctor", "linear")
            #expect(fine.out.contains("accepts the account's token"), "\(fine)")
            try MCPStandIn.announce(stage, announced + #","initialize":\#(status),"wants":"mcp:admin"}"#)
            try await stage.ringback("doctor", "linear", status: 1, prints: text, "→ \(command)\n")
        }
    }

    @Test func `is removed with the client that was registered for it`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(stage, #"{"issuers":["{sandbox}"]}"#)
            try await stage.ringback("account", "add", "linear", "--mcp", server.url, status: 0)
            try await stage.signIn("linear")
            try await stage.ringback("account", "remove", "linear", "--yes", status: 0)
            let counters = try await stage.sandbox.request("GET", "/sandbox/counters").json
            #expect(counters["registrations"] == 1 && counters["registrations_deleted"] == 1, "\(counters)")
            #expect(!FileTree.names(in: "\(stage.state)/vault").contains { $0.hasSuffix(".registration") })
        }
    }

    @Test func `has a document for servers that take one as the client`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let url = "https://apps.example.org/ringback.json"
            let printed = try await stage.ringback("client-metadata", url)
            let document = try printed.json
            #expect(printed.status == 0 && document["client_id"]?.string == url)
            #expect(document["application_type"] == "native" && document["token_endpoint_auth_method"] == "none")
            #expect(document["redirect_uris"] == ["http://127.0.0.1/callback", "http://localhost/callback"])
            try await stage.ringback("client-metadata", "https://apps.example.org", status: 64)
        }
    }
}
