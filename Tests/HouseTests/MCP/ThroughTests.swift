import RingbackBase
import Testing

/// MCP's scenario enterprise-managed-authorization: the provider of the sign-in is the sandbox's root issuer, the MCP
/// server's authorization server another issuer of it, which takes the first one's assertions.
@Suite struct `An account at an MCP server, through the sign-in of another` {
    private static let prefix = "urn:ietf:params:oauth:"
    private static let work = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "company"
        client_secret_file = "{stage}/company"
        scopes = ["openid", "email", "offline_access"]
        """

    private func play(_ test: (Stage, String) async throws -> Void) async throws {
        try await Stage.play(Self.work, startsDaemon: false) { stage in
            try stage.write("company-hush\n", to: "\(stage.directory)/company")
            try stage.write("linear-hush\n", to: "\(stage.directory)/linear")
            try await stage.sandbox.control(["clients": [["id": "company", "secret": "company-hush"]]])
            let keys = try await stage.sandbox.request("GET", "/jwks").json
            try await stage.sandbox.control(
                [
                    "assertion_issuers": .object(JSONObject([.init(stage.sandbox.origin, keys)])),
                    "clients": [["id": "at-linear", "secret": "linear-hush"]],
                ], issuer: "/tenant-a")
            try await stage.startDaemon()
            let server = try await MCPStandIn.start(
                stage, #"{"issuers":["{sandbox}/tenant-a"],"scopes":["mcp:tools"]}"#)
            try await stage.ringback(
                "account", "add", "linear", "--mcp", server.url, "--through", "work", "--client-id", "at-linear",
                "--client-secret-file", "\(stage.directory)/linear", status: 0,
                says: "names \(stage.sandbox.origin)/tenant-a as its authorization server")
            let text = FileTree.text(of: "\(stage.dropIns)/linear.toml") ?? ""
            #expect(text.contains("\nissuer = \"\(stage.sandbox.origin)/tenant-a\"\n"), "\(text)")
            #expect(text.contains("\nthrough = \"work\"\n"), "\(text)")
            try await test(stage, server.url)
        }
    }

    private func forms(_ stage: Stage, issuer: String = "") async throws -> [JSON] {
        try await stage.sandbox.log(issuer: issuer).filter { $0["endpoint"] == "token" }
    }

    private func exchanges(_ stage: Stage) async throws -> [JSON] {
        try await forms(stage).filter { $0["parameters"]?["requested_token_type"] != nil }
    }

    @Test func `gets its tokens without a page: an assertion for the ID token, a token for the assertion`() async throws
    {
        try await play { stage, url in
            try await stage.signIn()
            let lines = [
                #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#
            ]
            let bridge = try await Program(
                "ringback", ["mcp", "linear"], environment: stage.environment,
                stdin: lines.joined(separator: "\n") + "\n"
            ).end()
            #expect(bridge.status == 0 && bridge.lines.count == 1 && bridge.err.isEmpty, "\(bridge)")

            let exchange = try #require(try await exchanges(stage).first)
            let sent = try #require(exchange["parameters"])
            #expect(exchange["status"] == 200, "\(exchange)")
            #expect(exchange["headers"]?["authorization"]?.string?.hasPrefix("Basic ") == true)
            #expect(sent["grant_type"]?.string == "\(Self.prefix)grant-type:token-exchange")
            #expect(sent["subject_token_type"]?.string == "\(Self.prefix)token-type:id_token")
            #expect(sent["requested_token_type"]?.string == "\(Self.prefix)token-type:id-jag")
            #expect(sent["audience"]?.string == "\(stage.sandbox.origin)/tenant-a")
            #expect(sent["resource"]?.string == url && sent["scope"] == "mcp:tools")
            let grants = try await forms(stage, issuer: "/tenant-a")
            let grant = try #require(grants.first?["parameters"])
            #expect(grants.count == 1 && grants[0]["status"] == 200, "\(grants)")
            #expect(grant["grant_type"]?.string == "\(Self.prefix)grant-type:jwt-bearer")
            #expect(grants[0]["headers"]?["authorization"]?.string?.hasPrefix("Basic ") == true)
            #expect(grant["assertion"]?.string?.split(separator: ".").count == 3)
            // No page was opened at the other issuer, and each secret went to its own issuer alone.
            #expect(try await stage.sandbox.log(issuer: "/tenant-a").allSatisfy { $0["endpoint"] != "authorize" })
            try await stage.ringback("accounts", "linear", prints: "through work")
            let account = try await stage.account("linear")
            #expect(account["through"] == "work" && account["state"] == "authenticated", "\(account)")
            // The same assertion is good for the next token.
            try await stage.api("POST", "/v1/accounts/linear/refresh", ["force": true], status: 200)
            #expect(try await exchanges(stage).count == 1)
        }
    }

    @Test func `gets another assertion for one that the server refuses, once`() async throws {
        try await play { stage, _ in
            try await stage.signIn()
            try await stage.sandbox.control(
                ["perturb": [["name": "token_invalid_grant", "count": 1]]], issuer: "/tenant-a")
            #expect(try await stage.token("linear")?.hasPrefix("at-") == true)
            #expect(try await exchanges(stage).count == 2)
            #expect(try await forms(stage, issuer: "/tenant-a").count == 2)
        }
    }

    @Test func `shows the refresh token where the provider renews no ID tokens`() async throws {
        try await play { stage, _ in
            try await stage.sandbox.control(["id_token_on_refresh": false, "id_token_lifetime": 20])
            try await stage.signIn()
            #expect(try await stage.token("linear")?.hasPrefix("at-") == true)
            let sent = try await exchanges(stage).compactMap { $0["parameters"]?["subject_token_type"]?.string }
            #expect(sent == ["\(Self.prefix)token-type:refresh_token"])
            // The session itself goes on.
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            #expect(try await stage.sandbox.counters().json["reuse_detections"]?.integer == 0)
        }
    }

    @Test func `ends with that sign-in, and its command leads there`() async throws {
        try await play { stage, _ in
            try await stage.signIn()
            let token = try await stage.token("linear")
            try await stage.ringback("logout", "work", status: 0)
            try await stage.sandbox.wait("revocation", what: "seen", issuer: "/tenant-a")
            let revoked = try await stage.sandbox.log(issuer: "/tenant-a").filter { $0["endpoint"] == "revocation" }
            #expect(revoked.first?["parameters"]?["token"]?.string == token && token != nil)
            let refused = try await stage.api(
                "GET", "/v1/accounts/linear/session", status: 401, code: "sign_in_required")
            #expect(refused["account"] == "work", "\(refused)")
            #expect(try await stage.account("linear")["state"] == "unauthenticated")
            let login = try stage.start("ringback", ["login", "linear", "--no-browser"])
            _ = try await login.errorLine("whose sign-in it is") { $0.contains("through the sign-in of work") }
            login.send(2)
            _ = try await login.end()
            try await stage.signIn()
            #expect(try await stage.token("linear")?.hasPrefix("at-") == true)
        }
    }

    @Test func `says what a stronger sign-in needs`() async throws {
        try await play { stage, _ in
            try await stage.signIn()
            let fault: JSON = [
                "endpoint": "token", "kind": "error", "status": 400, "error": "insufficient_user_authentication",
                "count": 1,
                "body": ["error": "insufficient_user_authentication", "acr_values": "urn:mfa", "max_age": 60],
            ]
            try await stage.sandbox.control(["faults": [fault]])
            try await stage.ringback(
                "token", "linear", status: 3, says: "stronger or a newer sign-in",
                "ringback login linear --again --param=acr_values=urn:mfa --param=max_age=60")
        }
    }
}
