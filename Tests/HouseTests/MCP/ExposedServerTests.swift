import RingbackBase
import TestSupport
import Testing

/// An exposed socket with an account's MCP server behind it, through the real executables.
@Suite struct `An exposed MCP server` {
    private static let begin = [
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ]

    private static func call(_ id: Int, _ tool: String, _ arguments: String = "{}") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
    }

    private func socket(_ stage: Stage) -> String { "\(stage.directory)/run/ringback/mount/agent/socket" }

    private static let table = """

        [[expose]]
        name = "agent"
        account = "linear"
        mcp = true
        tools = ["echo", "headers"]

        """

    /// A stage with the socket `agent`, which allows the tools `echo` and `headers`.
    private func play(
        _ table: String = table, bindsTokens: Bool = false, _ test: (Stage, Program) async throws -> Void
    ) async throws {
        try await Stage.play("") { stage in
            if bindsTokens { try await stage.sandbox.control(["dpop": "offered"]) }
            let members = #""session":"s1","tools":["echo","size","headers"],"dpop":\#(bindsTokens)"#
            let announced = #"{"issuers":["\#(stage.sandbox.origin)"],\#(members)}"#
            try stage.write(announced, to: "\(stage.directory)/mcp.json")
            let server = try stage.start(
                "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/mcp_server.py", stage.directory])
            let url = "http://127.0.0.1:\(try await server.line("the port of the MCP server"))/mcp"
            try stage.write(configuration: "[accounts.linear]\nmcp = \"\(url)\"\n\(table)")
            try await stage.ringback("reload", status: 0)
            try await stage.signIn("linear")
            try await test(stage, server)
        }
    }

    /// Runs a bridge at the exposed socket to the end of its input. Gives what it wrote, by id.
    private func bridge(_ stage: Stage, _ lines: [String]) async throws -> (output: Output, answers: [Int: JSON]) {
        let program = try Program(
            "ringback", ["mcp", "linear"],
            environment: stage.environment.merging(["RINGBACK_SOCK": socket(stage)]) { $1 },
            stdin: lines.joined(separator: "\n") + "\n")
        let output = try await program.end()
        var answers: [Int: JSON] = [:]
        for line in output.lines {
            let json = try JSON(parsing: Array(line.utf8))
            if let id = json["id"]?.integer { answers[id] = json }
        }
        return (output, answers)
    }

    @Test func `serves the tools that are listed, and no token`() async throws {
        try await play { stage, server in
            let token = try #require(try await stage.token("linear"))
            let (output, answers) = try await bridge(
                stage,
                Self.begin + [
                    #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, Self.call(2, "echo", #"{"a":"ü"}"#),
                    Self.call(3, "size", #"{"text":"x"}"#), Self.call(4, "headers"),
                    #"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///"}}"#,
                ])
            #expect(output.status == 0, "\(output)")
            let listed = answers[1]?["result"]?["tools"]?.array?.compactMap { $0["name"]?.string }
            #expect(listed == ["echo", "headers"], "\(output)")
            #expect(answers[2]?["result"]?["a"] == "ü")
            #expect(answers[3]?["error"]?["data"]?["code"] == "policy_denied")
            #expect(answers[4]?["error"]?["data"]?["code"] == "response_withheld")
            #expect(answers[5]?["error"]?["data"]?["code"] == "policy_denied")
            #expect(!output.out.contains(token) && !output.err.contains(token))
            // What was denied was not sent.
            let sent = server.output.value.text
            #expect(sent.components(of: "tools/call") == 2 && !sent.contains("resources/read"), "\(sent)")
            try await stage.eventually("the denials in the audit log") {
                let entries = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
                let denied = entries.filter { $0["event"] == "mcp_message_denied" && $0["exposed_socket"] == "agent" }
                return denied.contains { $0["tool"] == "size" && $0["account"] == "linear" }
                    && denied.contains { $0["method"] == "resources/read" }
                    && entries.contains { $0["event"] == "mcp_message_withheld" && $0["reason"] == "secret" }
            }
            let refused = try await stage.ringback("token", "linear", environment: ["RINGBACK_SOCK": socket(stage)])
            #expect(refused.status != 0 && !refused.out.contains(token), "\(refused)")
        }
    }

    @Test func `gets proofs for a token that is bound to a key, which do not pass to the program`() async throws {
        try await play(bindsTokens: true) { stage, server in
            let (output, answers) = try await bridge(
                stage, Self.begin + [Self.call(1, "echo", #"{"a":"b"}"#), Self.call(2, "headers")])
            #expect(output.status == 0 && answers[1]?["result"]?["a"] == "b", "\(output)")
            #expect(answers[2]?["error"]?["data"]?["code"] == "response_withheld")
            let seen = server.output.value.text
            #expect(seen.contains("POST /mcp nonce ") && seen.contains("POST /mcp token tools/call"), "\(seen)")
            try await stage.ringback(
                "token", "linear", "--dpop", "POST", "http://127.0.0.1:1/mcp",
                environment: ["RINGBACK_SOCK": socket(stage)], status: 4, out: "", says: "no token is served")
        }
    }

    @Test func `is made by a command, and comes back after a restart of the daemon`() async throws {
        try await play("") { stage, _ in
            try await stage.ringback(
                "expose", "agent", "--account", "linear", "--mcp", "--tool", "echo", "--ttl", "8h", status: 0,
                says: "the MCP server of linear with echo")
            let listed = try await stage.ringback("expose", "list")
            #expect(listed.out.contains("MCP: echo"), "\(listed)")
            let lines =
                Self.begin + [Self.call(1, "echo", #"{"a":"b"}"#)]
                + (2...50).map { Self.call($0, "size", #"{"text":"x"}"#) }
            let (output, answers) = try await bridge(stage, lines)
            #expect(answers[1]?["result"]?["a"] == "b", "\(output)")
            #expect((2...50).allSatisfy { answers[$0]?["error"]?["data"]?["code"] == "policy_denied" }, "\(output)")
            try await stage.eventually("the denials in the audit log, counted") {
                let entries = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
                let denied = entries.filter { $0["event"] == "mcp_message_denied" }
                // A query writes what was counted until then.
                return denied.map { $0["count"]?.integer ?? 1 }.reduce(0, +) == 49
            }
            try await stage.stopDaemon()
            try await stage.startDaemon()
            let (again, after) = try await bridge(stage, lines.prefix(3) + [Self.call(2, "size")])
            #expect(after[1]?["result"]?["a"] == "b", "\(again)")
            #expect(after[2]?["error"]?["data"]?["code"] == "policy_denied", "\(again)")
        }
    }

    @Test(ControlGroup.canStartApart)
    func `has the consent of its table, and a bridge asks for the program that has started it`() async throws {
        try await play("consent = \"ask\"\n" + Self.table) { stage, _ in
            let call = Self.call(1, "echo", #"{"a":"b"}"#)
            let (output, answers) = try await bridge(stage, Self.begin + [call])
            #expect(answers[1]?["result"]?["a"] == "b", "\(output)")
            let script = """
                import json, subprocess, sys
                bridge = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                bridge.stdin.write(sys.argv[1])
                bridge.stdin.flush()
                for line in bridge.stdout:
                    print(line, flush=True)
                    if line.startswith("{") and json.loads(line).get("id") == 1:
                        break
                bridge.stdin.close()
                bridge.wait()
                """
            let client = try stage.startApart(
                [
                    "/usr/bin/env", "python3", "-c", script, (Self.begin + [call, ""]).joined(separator: "\n"),
                    Programs.path("ringback"), "mcp", "linear",
                ])
            try await stage.eventually("a question") {
                try await stage.api("GET", "/v1/consents")["consents"]?.array?.isEmpty == false
            }
            let questions = try await stage.api("GET", "/v1/consents")["consents"]?.array ?? []
            #expect(questions.count == 1 && questions[0]["account"] == "linear", "\(questions)")
            let executable = questions[0]["program"]?["executable"]?.string ?? ""
            #expect(executable.contains("/python") && !executable.contains("ringback"), "\(questions)")
            _ = try await stage.api(
                "POST", "/v1/consents/\(questions[0]["id"]?.string ?? "")",
                ["decision": "allow", "remember": "session"], status: 200)
            let served = try await client.end()
            #expect(served.out.contains(#"{"a": "b"}"#), "\(served)")
        }
    }

    @Test(arguments: [
        ["--mcp", "--scope", "openid"], ["--tool", "echo"], ["--mcp", "--account", "other"], ["--method", "ping"],
    ]) func `is not made with options that do not belong together`(options: [String]) async throws {
        let refused = try await Program(
            "ringback", ["expose", "agent", "--account", "linear"] + options, environment: [:]
        ).end()
        #expect(refused.status == 64, "\(refused)")
    }

    @Test func `is named in the check of the configuration`() async throws {
        try await play { stage, _ in
            let check = try await stage.ringback("config", "check")
            let line = "expose agent: the MCP server of linear with echo, headers, no token"
            #expect(check.out.contains(line), "\(check)")
            #expect(check.out.contains("ringback doctor linear"), "\(check)")
        }
    }

    @Test func `takes no session of another socket, and says nothing of how the server is reached`() async throws {
        try await play { stage, server in
            let path = "\(stage.directory)/run/ringback/mount/agent/socket-relay.sock"
            try await stage.eventually("the relay") { (try? Connection(to: .unix(path))) != nil }
            let body = #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
            let ask = { (line: String) async throws -> String in
                let connection = try Connection(to: .unix(path))
                await connection.send(line + "\n" + body)
                return try await connection.readToEnd()
            }
            let fields = #""fields":[["Mcp-Session-Id","s1"]],"length":\#(body.utf8.count)}"#
            let forged = try await ask(#"{"account":"linear","method":"POST",\#(fields)"#)
            #expect(forged.contains(#""status":404"#), "\(forged)")
            let other = try await ask(#"{"account":"work","method":"POST",\#(fields)"#)
            #expect(other.contains("policy_denied"), "\(other)")
            // A sign-in asks the server too, without a token.
            let sent = server.output.value.text.split(separator: "\n").filter { !$0.contains(" none ") }
            #expect(!sent.contains { $0.contains("tools/list") }, "\(sent)")
            let found = try Connection(to: .unix(socket(stage)))
            await found.send(Stage.request("GET", "/v1/accounts/linear/mcp-server"))
            let answer = try await found.answer()
            #expect(answer.status == 200 && answer["exposed_socket"] == "agent", "\(answer)")
            #expect(answer["proxy"] == nil && answer["headers"] == nil)
        }
    }

    @Test func `has a relay that is given a socket of its own, where the account alone is served`() async throws {
        try await play { stage, _ in
            let run = "\(stage.directory)/run/ringback"
            let relays = FileTree.names(in: "/proc").compactMap { Int32($0) }.compactMap(Processes.arguments)
                .filter { $0.contains("ringback-relay") && $0.contains(run) }
            #expect(relays.count == 1 && relays.allSatisfy { $0.contains("\(run)/relay/agent.sock\0") }, "\(relays)")
            let path = "\(run)/relay/agent.sock"
            let session = try Connection(to: .unix(path))
            await session.send(Stage.request("GET", "/v1/accounts/linear/session"))
            let token = try await stage.token("linear")
            #expect(try await session.answer()["access_token"]?.string == token)
            for target in ["/v1/accounts", "/v1/accounts/linear", "/v1/accounts/other/session", "/v1/audit"] {
                let refused = try Connection(to: .unix(path))
                await refused.send(Stage.request("GET", target))
                #expect(try await refused.answer().status == 403, "\(target)")
            }
        }
    }

    @Test func `holds unfinished responses up to a limit, and refuses the others`() async throws {
        try await play(Self.table.replacing(#""echo", "headers""#, with: #""part", "release""#)) { stage, server in
            try stage.write(
                #"{"issuers":["\#(stage.sandbox.origin)"],"tools":["part"]}"#, to: "\(stage.directory)/mcp.json")
            let path = "\(stage.directory)/run/ringback/mount/agent/socket-relay.sock"
            try await stage.eventually("the relay") { (try? Connection(to: .unix(path))) != nil }
            let ask = { (body: String) async throws -> Connection in
                let connection = try Connection(to: .unix(path))
                let fields = #""fields":[],"length":\#(body.utf8.count)}"#
                await connection.send(#"{"account":"linear","method":"POST",\#(fields)\#n\#(body)"#)
                return connection
            }
            var waiting: [Connection] = []
            for id in 1...13 { waiting.append(try await ask(Self.call(id, "part", #"{"size":3145728}"#))) }
            // 32 MiB are ten of them.
            try await stage.eventually("the refusals in the audit log") {
                let entries = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
                let crowded = entries.filter { $0["event"] == "mcp_message_withheld" && $0["reason"] == "crowded" }
                return crowded.map { $0["count"]?.integer ?? 1 }.reduce(0, +) == 3
            }
            _ = try await ask(Self.call(14, "release")).readToEnd()
            var (whole, refused) = (0, 0)
            for connection in waiting {
                let text = try await connection.readToEnd()
                if text.contains("response_withheld") { refused += 1 }
                if text.utf8.count > 3_145_728 { whole += 1 }
            }
            #expect(whole == 10 && refused == 3)
            #expect(server.output.value.text.components(of: "tools/call") == 14)
        }
    }
}

extension String {
    func components(of text: String) -> Int { ranges(of: text).count }
}
