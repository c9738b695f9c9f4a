import Glibc
import RingbackBase
import Testing

/// `ringback mcp` and `ringback-relay` with a played client and a server of the tests (Tests/Programs/mcp_server.py).
@Suite struct `ringback mcp` {
    private static let begin = [
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ]

    private static func call(_ id: Int, _ tool: String, _ arguments: String = "{}") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
    }

    /// A stage with an account at the server; `mcp.json` has these members beside the issuers.
    private func play(
        _ members: String = "", signsIn: Bool = true, bindsTokens: Bool = false,
        _ test: (Stage, Program) async throws -> Void
    ) async throws {
        try await Stage.play("") { stage in
            try write(stage, members)
            if bindsTokens { try await stage.sandbox.control(["dpop": "offered"]) }
            let server = try stage.start(
                "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/mcp_server.py", stage.directory])
            let url = "http://127.0.0.1:\(try await server.line("the port of the MCP server"))/mcp"
            try await stage.ringback("account", "add", "linear", "--mcp", url, status: 0)
            if signsIn { try await stage.signIn("linear") }
            try await test(stage, server)
        }
    }

    private func write(_ stage: Stage, _ members: String) throws {
        let text = #"{"issuers":["\#(stage.sandbox.origin)"]\#(members.isEmpty ? "" : ",")\#(members)}"#
        try stage.write(text, to: "\(stage.directory)/mcp.json")
    }

    /// Runs a bridge to the end of its input. Gives what it wrote, by id.
    private func bridge(_ stage: Stage, _ lines: [String]) async throws -> (output: Output, answers: [Int: JSON]) {
        let program = try Program(
            "ringback", ["mcp", "linear"], environment: stage.environment,
            stdin: lines.joined(separator: "\n") + "\n")
        let output = try await program.end()
        var answers: [Int: JSON] = [:]
        for line in output.lines {
            // Nothing else may be on standard output.
            let json = try JSON(parsing: Array(line.utf8))
            #expect(json["jsonrpc"] == "2.0")
            if let id = json["id"]?.integer { answers[id] = json }
        }
        return (output, answers)
    }

    @Test func `carries requests, responses and streams in a session`() async throws {
        try await play(#""session":"s1""#) { stage, server in
            let (output, answers) = try await bridge(
                stage,
                Self.begin + [
                    Self.call(1, "echo", #"{"a":"ü"}"#), Self.call(2, "cut"), Self.call(3, "wait"),
                    Self.call(4, "release"),
                ])
            #expect(output.status == 0 && output.err.isEmpty, "\(output)")
            #expect(answers[0]?["result"]?["protocolVersion"] == "2025-06-18")
            #expect(answers[1]?["result"]?["a"] == "ü")
            #expect(answers[2]?["result"]?["resumed"] == true)
            #expect(answers[3]?["result"] != nil && answers[4]?["result"] != nil)
            #expect(output.lines.count { $0.contains("notifications/progress") } == 2)
            _ = try await server.line("the end of the session") { $0.hasPrefix("DELETE /mcp token") }
        }
    }

    @Test func `carries large messages, and follows the last slash`() async throws {
        try await play(#""slash":true"#) { stage, server in
            let text = String(repeating: "x", count: 48 << 10)
            let (output, answers) = try await bridge(
                stage, Self.begin + [Self.call(1, "size", #"{"text":"\#(text)"}"#)])
            #expect(answers[1]?["result"]?["size"] == 49_152, "\(output)")
            #expect(server.output.value.text.contains("POST /mcp/ token tools/call"))
        }
    }

    @Test func `proves each request with a token that is bound to a key, with nonces that are good once`() async throws
    {
        try await play(#""session":"s1","dpop":true"#, bindsTokens: true) { stage, server in
            #expect(try await stage.api("GET", "/v1/accounts/linear/session")["token_type"] == "DPoP")
            let text = String(repeating: "x", count: 48 << 10)
            let calls = (1...20).map { Self.call($0, "echo", #"{"a":\#($0)}"#) }
            let (output, answers) = try await bridge(
                stage, Self.begin + calls + [Self.call(21, "size", #"{"text":"\#(text)"}"#), Self.call(22, "cut")])
            #expect(output.status == 0 && output.err.isEmpty, "\(output.err)")
            for number in 1...20 { #expect(answers[number]?["result"]?["a"]?.integer == number) }
            #expect(answers[21]?["result"]?["size"] == 49_152 && answers[22]?["result"]?["resumed"] == true)
            let seen = server.output.value.text
            #expect(seen.contains("POST /mcp nonce initialize") && !seen.contains("invalid_dpop_proof"), "\(seen)")
            #expect(try await stage.sandbox.counters()["refreshes"] == 0)
        }
    }

    @Test func `writes all that a pipe takes, and leaves its mode as it is`() async throws {
        try await play { stage, _ in
            let lines = Self.begin + [Self.call(1, "text", #"{"size":4000000}"#)]
            let client = try Program(
                "/usr/bin/env",
                ["python3", "-B", "\(Document.root)/Tests/Programs/bridge_client.py"]
                    + [Programs.path("ringback"), "mcp", "linear"],
                environment: stage.environment, stdin: lines.joined(separator: "\n") + "\n")
            let output = try await client.end()
            let words = output.out.split(whereSeparator: \.isWhitespace)
            #expect(words.first.flatMap { Int($0) } ?? 0 > 4_000_000 && words.dropFirst() == ["waits"], "\(output)")
        }
    }

    @Test func `says how to sign in, and answers all the same`() async throws {
        try await play(signsIn: false) { stage, _ in
            let (output, answers) = try await bridge(
                stage, [#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#])
            #expect(answers[7]?["error"]?["data"]?["command"] == "ringback login linear", "\(output)")
            #expect(output.err.contains("Run: ringback login linear"))
        }
    }

    @Test func `is for accounts at MCP servers, by name or URL`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("mcp", "work", status: 1, out: "", says: "not an account at an MCP server")
            let none = try await stage.ringback("mcp", "https://mcp.example.com/mcp")
            #expect(
                none.out.isEmpty && none.err.contains("account add NAME --mcp=https://mcp.example.com/mcp"), "\(none)")
        }
    }

    @Test func `answers initialize with the reason and the candidates unless there is one server`() async throws {
        try await play(signsIn: false) { stage, _ in
            let file = try await stage.run("/usr/bin/env", ["cat", "\(stage.dropIns)/linear.toml"])
            let url = try #require(file.out.split(separator: "\"").first { $0.hasSuffix("/mcp") })
            try await stage.ringback("account", "add", "other", "--mcp", String(url), status: 0)
            for (name, status, code, texts) in [
                (String(url), 64, "account_needed", ["linear", "other", "ringback mcp linear"]),
                ("nosuch", 64, "account_not_found", ["linear", "ringback account add nosuch --mcp=URL"]),
                ("https://a.example/$(id)", 64, "account_not_found", ["linear", "--mcp='https://a.example/$(id)'"]),
            ] as [(String, Int32, JSON, [String])] {
                let output = try await Program(
                    "ringback", ["mcp", name], environment: stage.environment,
                    stdin: Self.begin.joined(separator: "\n") + "\n"
                ).end().expect(status)
                #expect(output.lines.count == 1, "\(output)")
                let answer = try JSON(parsing: Array((output.lines.first ?? "").utf8))
                #expect(answer["id"] == 0 && answer["error"]?["data"]?["code"] == code, "\(output)")
                let message = answer["error"]?["message"]?.string ?? ""
                #expect(texts.allSatisfy(message.contains), "\(message)")
            }
        }
    }
}
