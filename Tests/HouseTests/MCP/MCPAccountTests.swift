import StrictJSON
import Testing

/// Accounts at MCP servers (Tests/Programs/mcp_server.py), whose authorization server is the sandbox.
@Suite struct `An account from the URL of an MCP server` {
    private func startServer(_ stage: Stage, _ announced: String) async throws -> (program: Program, url: String) {
        try announce(stage, announced)
        let program = try stage.start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/mcp_server.py", stage.directory])
        return (program, "http://127.0.0.1:\(try await program.line("the port of the MCP server"))/mcp")
    }

    private func announce(_ stage: Stage, _ text: String) throws {
        try stage.write(text.replacing("{sandbox}", with: stage.sandbox.origin), to: "\(stage.directory)/mcp.json")
    }

    private func requests(_ stage: Stage, _ endpoint: String, issuer: String = "") async throws -> [JSON] {
        try await stage.sandbox.log(issuer: issuer).filter { $0["endpoint"]?.string == endpoint }
    }

    @Test func `needs nothing but the URL`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(
                stage, #"{"issuers":["{sandbox}"],"scopes":["mcp:read","mcp:write"],"challenge":"mcp:read"}"#)
            let added = try await stage.ringback("account", "add", "linear", "--mcp", server.url)
            #expect(added.status == 0, "\(added)")
            #expect(!added.out.contains("Register at the provider"))
            #expect(
                FileTree.text(of: "\(stage.dropIns)/linear.toml")?.contains("mcp = \"\(server.url)\"") == true)
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

    @Test func `moves to another authorization server with a client of its own`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(stage, #"{"issuers":["{sandbox}"],"scopes":["mcp:read"]}"#)
            #expect(try await stage.ringback("account", "add", "linear", "--mcp", server.url).status == 0)
            try await stage.signIn("linear")
            let first = try await requests(stage, "authorize").first?["parameters"]?["client_id"]?.string
            try announce(stage, #"{"issuers":["{sandbox}/tenant-a"],"scopes":["mcp:read"]}"#)
            let doctor = try await stage.ringback("doctor", "linear")
            let said = doctor.out + doctor.err
            #expect(said.contains("\(stage.sandbox.origin)/tenant-a in place of \(stage.sandbox.origin)"), "\(said)")
            // The session goes on at the issuer that made it.
            #expect(try await stage.api("POST", "/v1/accounts/linear/refresh", ["force": true]).status == 200)
            let flow = try await stage.begin("linear", ["switch_subject": true])
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL, as: "alice"))
            #expect(try await stage.token("linear") != nil)
            let second = try await requests(stage, "authorize", issuer: "/tenant-a").first?["parameters"]
            #expect(second?["client_id"]?.string != first && second?["client_id"] != nil)
            #expect(try await stage.sandbox.logText(issuer: "/tenant-a").contains(first ?? "none") == false)
        }
    }

    @Test func `is refused where the server speaks for another one`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(
                stage, #"{"issuers":["{sandbox}"],"resource":"https://other.example/mcp"}"#)
            let added = try await stage.ringback("account", "add", "linear", "--mcp", server.url)
            #expect(added.status == 78, "\(added)")
            #expect(added.err.contains("https://other.example/mcp") && added.err.contains("--mcp"), "\(added)")
            #expect(FileTree.text(of: "\(stage.dropIns)/linear.toml") == nil)
            #expect(try await requests(stage, "authorize").isEmpty)
        }
    }

    @Test func `is removed with the client that was registered for it`() async throws {
        try await Stage.play("") { stage in
            let server = try await startServer(stage, #"{"issuers":["{sandbox}"]}"#)
            #expect(try await stage.ringback("account", "add", "linear", "--mcp", server.url).status == 0)
            try await stage.signIn("linear")
            let removed = try await stage.ringback("account", "remove", "linear", "--yes")
            #expect(removed.status == 0, "\(removed)")
            let counters = try await stage.sandbox.request("GET", "/sandbox/counters").json
            #expect(counters["registrations"] == 1 && counters["registrations_deleted"] == 1, "\(counters)")
            #expect(!FileTree.names(in: "\(stage.state)/vault").contains { $0.hasSuffix(".registration") })
        }
    }

    @Test func `has a document for servers that take one as the client`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let url = "https://apps.example.org/ringback.json"
            let printed = try await stage.ringback("client-metadata", url)
            let document = try JSON(parsing: printed.out.utf8)
            #expect(printed.status == 0 && document["client_id"]?.string == url)
            #expect(document["application_type"] == "native" && document["token_endpoint_auth_method"] == "none")
            #expect(document["redirect_uris"] == ["http://127.0.0.1/callback", "http://localhost/callback"])
            #expect(try await stage.ringback("client-metadata", "https://apps.example.org").status == 64)
        }
    }
}
