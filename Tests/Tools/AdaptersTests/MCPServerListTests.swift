import RingbackBase
import Testing

@testable import Adapters

@Suite struct `The list of MCP servers of an AI tool` {
    private static let entry = AITool.cursor.entry("/usr/bin/ringback", ["mcp", "linear"])

    private func changed(_ text: String, member: String = "mcpServers") throws -> (added: String, removed: String) {
        var list = try MCPServerList(reading: Array(text.utf8), member: member)
        list.add("linear", Self.entry)
        let added = String(decoding: list.bytes, as: UTF8.self)
        list.remove("linear")
        return (added, String(decoding: list.bytes, as: UTF8.self))
    }

    @Test func `is made where there is none, and goes with its last entry`() throws {
        let (added, removed) = try changed("{}\n")
        #expect(
            added == """
                {
                  "mcpServers": {
                    "linear": {
                      "command": "/usr/bin/ringback",
                      "args": ["mcp", "linear"]
                    }
                  }
                }

                """)
        #expect(removed == "{\n}\n")
        #expect(try MCPServerList(reading: nil, member: "servers").entry("linear") == nil)
    }

    @Test func `keeps comments, order and the comma after the last member`() throws {
        let text = """
            // Mine.
            {
            \t"theme": "One", // the light one
            \t"mcpServers": {
            \t\t/* The first. */
            \t\t"other": { "command": "x", }, // stays
            \t},
            \t// The end.
            }

            """
        let (added, removed) = try changed(text)
        #expect(
            added == """
                // Mine.
                {
                \t"theme": "One", // the light one
                \t"mcpServers": {
                \t\t/* The first. */
                \t\t"other": { "command": "x", }, // stays
                \t\t"linear": {
                \t\t\t"command": "/usr/bin/ringback",
                \t\t\t"args": ["mcp", "linear"]
                \t\t},
                \t},
                \t// The end.
                }

                """)
        #expect(removed == text)
    }

    @Test func `sets the comma before a comment and the entry behind it`() throws {
        let text = "{\n    \"mcpServers\": {\n        \"a\": {} // mine\n    }\n}\n"
        let (added, removed) = try changed(text)
        #expect(added.hasPrefix("{\n    \"mcpServers\": {\n        \"a\": {}, // mine\n        \"linear\": {\n"))
        #expect(removed == text)
    }

    @Test func `stays as an empty list where a comment stands in it`() throws {
        let text = "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n"
        let (added, removed) = try changed(text)
        #expect(added.contains("// none yet\n    \"linear\""))
        #expect(removed == text)
    }

    @Test(arguments: ["[]", "{", "{\"a\":1,\"a\":2}", "{\"mcpServers\":[]}", "{/*", "x"])
    func `is not changed where it cannot be read`(text: String) {
        #expect(throws: MCPServerList.Failure.self) {
            try MCPServerList(reading: Array(text.utf8), member: "mcpServers")
        }
    }

    @Test(arguments: AITool.allCases) func `tells the words of its entries`(tool: AITool) {
        let entry = JSON.object(tool.entry("/usr/bin/ringback", ["mcp", "linear"]))
        #expect(tool.words(of: entry) == ["/usr/bin/ringback", "mcp", "linear"])
        #expect(tool.words(of: ["url": "https://mcp.example/mcp"]) == nil)
    }
}

@Suite struct `The list of MCP servers of codex` {
    private static let words = ["mcp", "linear"]

    @Test(arguments: ["", "model = \"x\"\n", "model = \"x\"", "[mcp_servers.other]\ncommand = \"y\"\n"])
    func `gets a table at the end and loses it again`(text: String) {
        var list = CodexServerList(reading: Array(text.utf8))
        list.add("linear", "/usr/bin/ringback", Self.words)
        let added = String(decoding: list.bytes, as: UTF8.self)
        #expect(
            added.hasPrefix(text)
                && added.hasSuffix(
                    "[mcp_servers.linear]\ncommand = \"/usr/bin/ringback\"\nargs = [\"mcp\", \"linear\"]\n")
        )
        #expect(list.has("linear", "/usr/bin/ringback", Self.words))
        list.add("linear", "/usr/bin/ringback", Self.words)
        #expect(String(decoding: list.bytes, as: UTF8.self) == added)
        list.remove("linear", "/usr/bin/ringback", Self.words)
        let end = text.isEmpty || text.hasSuffix("\n") ? "" : "\n"
        #expect(String(decoding: list.bytes, as: UTF8.self) == text + end)
    }

    @Test(arguments: [
        "[mcp_servers]\n", "mcp_servers = {}\n", "[ mcp_servers . \"linear\" ]\n", "[mcp_servers.linear.env]\n",
    ])
    func `is left alone where the server may be in it already`(text: String) {
        var list = CodexServerList(reading: Array(text.utf8))
        #expect(list.mentions("linear"))
        list.add("linear", "/usr/bin/ringback", Self.words)
        #expect(list.bytes == Array(text.utf8))
    }

    @Test func `keeps a table that was changed`() {
        let text =
            "[mcp_servers.linear]\ncommand = \"/usr/bin/ringback\"\nargs = [\"mcp\", \"linear\"]\nenabled = false\n"
        var list = CodexServerList(reading: Array(text.utf8))
        list.remove("linear", "/usr/bin/ringback", Self.words)
        #expect(list.bytes == Array(text.utf8))
    }
}

@Suite struct `The program of a server in an AI tool's list` {
    private func repaired(_ text: String, of tool: AITool) throws -> String {
        guard case .json(let member) = tool.form else { return "" }
        var list = try MCPServerList(reading: Array(text.utf8), member: member)
        list.setProgram(of: "linear", to: "/new/ringback")
        return String(decoding: list.bytes, as: UTF8.self)
    }

    private static let forms: [(AITool, String)] = [
        (.cursor, #"{"mcpServers":{"a":{"command":"/old/y"},"linear":{"env":{"A":"b"},"command":"/old/x"}}}"#),
        (.opencode, #"{"mcp":{"linear":{"command":[ /* it */ "/old/x","mcp","linear"],"enabled":false}}}"#),
        (.zed, #"{"context_servers":{"linear":{"command":{"path":"/old/x","args":["mcp","linear"],"env":null}}}}"#),
    ]

    @Test(arguments: forms.indices) func `is replaced alone`(index: Int) throws {
        let (tool, text) = Self.forms[index]
        #expect(try repaired(text, of: tool) == text.replacing("/old/x", with: "/new/ringback"))
    }

    @Test func `is read from the former form of zed`() throws {
        let entry: JSON = ["command": ["path": "/usr/bin/ringback", "args": ["mcp", "linear"], "env": .null]]
        let words = try #require(AITool.zed.words(of: entry))
        #expect(words == ["/usr/bin/ringback", "mcp", "linear"] && AITool.account(of: words) == "linear")
    }
}
