import RingbackBase
import Testing

/// Service accounts at an MCP server (Tests/Programs/mcp_server.py), whose authorization server is the sandbox: the
/// scenarios client-credentials-basic, client-credentials-jwt and wif-jwt-bearer of MCP's conformance suite.
@Suite struct `A service account at an MCP server` {
    private func play(
        client: JSON? = nil, _ files: [String: String] = [:], options: [String],
        _ test: (Stage, Program) async throws -> Void
    ) async throws {
        try await Stage.play("") { stage in
            if let client { try await stage.sandbox.control(["clients": [client]]) }
            for (name, text) in files { try stage.write(text, to: "\(stage.directory)/\(name)") }
            let server = try await MCPStandIn.start(stage, #"{"issuers":["{sandbox}"],"scopes":["mcp:tools"]}"#)
            let options = options.map { $0.replacing("{stage}", with: stage.directory) }
            try await stage.run(
                "ringback", ["account", "add", "tools", "--mcp", server.url] + options, status: 0,
                says: "names \(stage.sandbox.origin) as its authorization server", "Nobody has to sign in.")
            let text = FileTree.text(of: "\(stage.dropIns)/tools.toml") ?? ""
            #expect(text.contains("\nissuer = \"\(stage.sandbox.origin)\"\n"), "\(text)")
            // Adding it proves nothing to anybody.
            #expect(try await stage.tokenForms().isEmpty)
            try await test(stage, server.program)
        }
    }

    private func bridge(_ stage: Stage) async throws -> Output {
        let lines = [
            #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        ]
        return try await Program(
            "ringback", ["mcp", "tools"], environment: stage.environment,
            stdin: lines.joined(separator: "\n") + "\n"
        ).end()
    }

    private func tokenRequests(_ stage: Stage) async throws -> [JSON] {
        try await stage.sandbox.log().filter { $0["endpoint"] == "token" }
    }

    @Test(arguments: ["client_secret_basic", "client_secret_post"])
    func `proves itself by its secret, and is served by the bridge`(way: String) async throws {
        let options = [
            "--grant", "client_credentials", "--client-id", "robot", "--client-secret-file", "{stage}/secret",
            "--client-authentication", way,
        ]
        let client: JSON = ["id": "robot", "secret": "robot-hush"]
        try await play(client: client, ["secret": "robot-hush\n"], options: options) { stage, server in
            let output = try await bridge(stage)
            #expect(output.status == 0 && output.lines.count == 2 && output.err.isEmpty, "\(output)")
            _ = try await server.line("a request with a token") { $0.hasPrefix("POST /mcp token tools/list") }
            let requests = try await tokenRequests(stage)
            let form = try #require(requests.first?["parameters"])
            #expect(requests.count == 1 && form["grant_type"] == "client_credentials", "\(requests)")
            #expect(form["scope"] == "mcp:tools" && form["resource"]?.string?.hasSuffix("/mcp") == true)
            let header = requests.first?["headers"]?["authorization"]?.string
            #expect((header?.hasPrefix("Basic ") == true) == (way == "client_secret_basic"))
            #expect((form["client_secret"] == nil) == (way == "client_secret_basic"))
            let account = try await stage.account("tools")
            #expect(account["state"] == "authenticated" && account["grant"] == "client_credentials")
            try await stage.ringback(
                "doctor", "tools", prints: "the client is the configured one", "accepts the account's token")
        }
    }

    @Test func `proves itself by its key`() async throws {
        let client: JSON = ["id": "signs", "jwks": ["keys": [`A client's own key`.publicHalf]]]
        let options = [
            "--grant", "client_credentials", "--client-id", "signs", "--client-key-file", "{stage}/key",
        ]
        try await play(client: client, ["key": `A client's own key`.key], options: options) { stage, _ in
            #expect(try await stage.token("tools")?.hasPrefix("at-") == true)
            let requests = try await tokenRequests(stage)
            let form = try #require(requests.first?["parameters"])
            #expect(requests.count == 1 && requests.first?["status"] == 200, "\(requests)")
            #expect(form["grant_type"] == "client_credentials" && form["client_secret"] == nil)
            let claims = form["client_assertion"]?.string.flatMap(claims)
            #expect(claims?["iss"] == "signs" && claims?["sub"] == "signs", "\(String(describing: claims))")
            #expect(claims?["aud"]?.string == stage.sandbox.origin)
        }
    }

    private func claims(of token: String) -> JSON? {
        token.split(separator: ".").dropFirst().first.flatMap { Base64URL.decode($0) }.flatMap {
            try? JSON(parsing: $0)
        }
    }

    @Test func `exchanges its workload's assertion, once for each token`() async throws {
        let options = ["--grant", "jwt_bearer", "--assertion-file", "{stage}/assertion"]
        try await play(options: options) { stage, _ in
            let file = "\(stage.directory)/assertion"
            try stage.write(try await makeAssertion(stage), to: file)
            #expect(try await stage.token("tools")?.hasPrefix("at-") == true)
            let form = try #require(try await stage.tokenForms().first)
            #expect(form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer" && form["client_id"] == nil)
            #expect(form["assertion"]?.string == FileTree.text(of: file))
            // After a refusal the same assertion is not shown again, nor another grant tried.
            try stage.write(
                try await makeAssertion(stage, audience: "https://elsewhere.example"), to: file)
            let refused = try await stage.api("POST", "/v1/accounts/tools/refresh", ["force": true], status: 422)
            #expect(refused["provider_code"] == "invalid_grant", "\(refused)")
            #expect(try await stage.tokenForms().count == 2)
        }
    }

    @Test func `is refused where nobody has said who may have its secret`() async throws {
        let configuration = """
            [accounts.tools]
            mcp = "https://mcp.example.com/mcp"
            grant = "client_credentials"
            client_id = "robot"
            client_secret_file = "{stage}/secret"
            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try stage.write("hush\n", to: "\(stage.directory)/secret")
            try await stage.ringback("config", "check", status: 78, says: "grant: needs issuer with mcp")
        }
    }

    @Test func `sends nothing to an authorization server that the server names in place of its own`() async throws {
        let options = [
            "--grant", "client_credentials", "--client-id", "robot", "--client-secret-file", "{stage}/secret",
        ]
        let client: JSON = ["id": "robot", "secret": "robot-hush"]
        try await play(client: client, ["secret": "robot-hush\n"], options: options) { stage, _ in
            try MCPStandIn.announce(stage, #"{"issuers":["{sandbox}/tenant-a"]}"#)
            let refused = try await stage.api("GET", "/v1/accounts/tools/session", status: 400)
            #expect(refused["detail"]?.string?.contains("does not name \(stage.sandbox.origin)") == true, "\(refused)")
            #expect(try await stage.sandbox.log(issuer: "/tenant-a").isEmpty)
            #expect(try await stage.tokenForms().isEmpty)
        }
    }
}

/// The MCP server of the tests, beside a stage.
enum MCPStandIn {
    static func start(_ stage: Stage, _ announced: String) async throws -> (program: Program, url: String) {
        try announce(stage, announced)
        let program = try stage.start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/mcp_server.py", stage.directory])
        return (program, "http://127.0.0.1:\(try await program.line("the port of the MCP server"))/mcp")
    }

    static func announce(_ stage: Stage, _ text: String) throws {
        try stage.write(text.replacing("{sandbox}", with: stage.sandbox.origin), to: "\(stage.directory)/mcp.json")
    }
}
