import MCPBridge
import RingbackBase
import Testing

/// Parameters of tools in header fields (2026-07-28, Custom Headers from Tool Parameters).
@Suite struct `Parameters in header fields` {
    private static let meta = #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#

    /// A bridge whose client has listed one tool with this schema.
    private func listed(_ schema: String, stated: Bool = true) -> Played {
        var played = Played()
        let params = stated ? "{\(Self.meta)}" : "{}"
        let list = played.client(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":\#(params)}"#)
        played.respond(
            list, 200, #"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":\#(schema)}]}}"#)
        return played
    }

    private func call(_ arguments: String) -> String {
        #"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":\#(arguments),\#(Self.meta)}}"#
    }

    private static func schema(_ type: String, _ name: String = "\"Region\"") -> String {
        #"{"type":"object","properties":{"a":{"type":\#(type),"x-mcp-header":\#(name)},"b":{"type":"string"}}}"#
    }

    @Test(
        arguments: [
            ("\"string\"", "\"us west\"", "us west"), ("\"string\"", "\"\"", ""),
            ("\"string\"", "\"zähle\"", "=?base64?esOkaGxl?="),
            ("\"string\"", #""a\r\nX-Evil: 1""#, "=?base64?YQ0KWC1FdmlsOiAx?="),
            ("\"string\"", "\" a\"", "=?base64?IGE=?="),
            ("\"string\"", "\"=?base64?x\"", "=?base64?PT9iYXNlNjQ/eA==?="),
            ("\"boolean\"", "true", "true"), ("\"boolean\"", "false", "false"), ("\"integer\"", "42", "42"),
            ("\"integer\"", "-7", "-7"), ("\"number\"", "1.5", "1.5"), ("\"string\"", "null", nil),
            ("\"string\"", "{}", nil), ("\"string\"", "[1]", nil),
        ] as [(String, String, String?)])
    func `a call repeats a parameter`(type: String, value: String, expected: String?) {
        var played = listed(Self.schema(type))
        let call = played.client(call(#"{"b":"x","a":\#(value)}"#))
        #expect(played.field("Mcp-Param-Region", of: call) == expected)
        let names = played.request(call)?.fields.map(\.name).filter { $0.hasPrefix("Mcp-Param-") }
        #expect(names == (expected == nil ? [] : ["Mcp-Param-Region"]))
        // The relay takes what the bridge makes.
        #expect(played.request(call).map { RelayRequest(parsing: Array($0.line.dropLast())) == $0 } == true)
    }

    @Test func `a parameter that is not there has no field`() {
        var played = listed(Self.schema("\"string\""))
        let call = played.client(call(#"{"b":"x"}"#))
        #expect(call > 0 && played.field("Mcp-Param-Region", of: call) == nil)
    }

    @Test func `a parameter in an object is found by its path`() {
        var played = listed(
            #"{"properties":{"o":{"type":"object","properties":{"p":{"type":"integer","x-mcp-header":"P"}}}}}"#)
        let call = played.client(call(#"{"p":1,"o":{"p":2}}"#))
        #expect(played.field("Mcp-Param-P", of: call) == "2")
    }

    @Test(
        arguments: [
            schema("\"string\"", "\"\""), schema("\"object\""), schema("\"array\""), schema("\"null\""),
            schema("[\"string\",\"null\"]"), schema("\"string\"", "\"a b\""), schema("\"string\"", "\"a:b\""),
            schema("\"string\"", "\"ä\""), schema("\"string\"", #""a\r\nX-Evil""#), schema("\"string\"", "1"),
            #"{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}"#,
            #"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"R"}}}}"#,
            #"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"R"}}}]}"#,
            #"{"x-mcp-header":"R"}"#,
        ])
    func `a tool whose schema is wrong is not called, and the client is told why`(schema: String) {
        var played = listed(schema)
        // The list has reached the client as it is.
        #expect(played.written.first?["result"]?["tools"]?.array?.first?["name"] == "t")
        #expect(played.client(call(#"{"a":"x"}"#)) == 0)
        let error = played.written.last?["error"]
        #expect(error?["data"]?["code"] == "invalid_tool")
        #expect(error?["message"]?.string?.contains("x-mcp-header") == true)
        #expect(played.open.isEmpty)
    }

    @Test func `a value that no field can have is refused`() {
        var played = listed(Self.schema("\"string\""))
        let long = String(repeating: "x", count: 9_000)
        #expect(played.client(call(#"{"a":"\#(long)"}"#)) == 0)
        #expect(played.written.last?["error"]?["message"]?.string?.contains("Mcp-Param-Region is too long") == true)
    }

    @Test func `a newer list counts, and older revisions have no such fields`() {
        var played = listed(Self.schema("\"string\""))
        let list = played.client(#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{\#(Self.meta)}}"#)
        played.respond(list, 200, #"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"t","inputSchema":{}}]}}"#)
        #expect(played.field("Mcp-Param-Region", of: played.client(call(#"{"a":"x"}"#))) == nil)
        var older = listed(Self.schema("\"object\""), stated: false)
        #expect(older.client(call(#"{"a":{}}"#)) > 0)
    }

    @Test(arguments: [
        "mcp-param-", "mcp-param-a b", "mcp-param-a\r\nb", "authorization", "cookie", "host", "mcp-params-a",
    ])
    func `a field that is none of these is refused by the relay`(name: String) {
        #expect(!FieldRules.isRequested(name))
    }
}
