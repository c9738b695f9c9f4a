import MCPBridge
import RingbackBase
import Testing

@Suite struct `What an exposed socket sends to an MCP server` {
    private let rule = MessageRule(tools: ["list_issues", "get_K"])

    private func judge(_ text: String, _ rule: MessageRule? = nil) throws(MessageRule.Refusal) -> MessageRule.Judged {
        try (rule ?? self.rule).judge(Array(text.utf8))
    }

    private func refusal(_ text: String, _ rule: MessageRule? = nil) -> MessageRule.Refusal? {
        do throws(MessageRule.Refusal) {
            _ = try judge(text, rule)
            return nil
        } catch {
            return error
        }
    }

    private static func call(_ name: String) -> String {
        #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":\#(name)}}"#
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        #"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        #"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#,
        #"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        #"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
        `What an exposed socket sends to an MCP server`.call(#""list_issues""#),
    ])
    func `is what every session needs, and what is allowed`(text: String) throws {
        let judged = try judge(text)
        #expect(try JSON(parsing: judged.message.bytes) == JSON(parsing: Array(text.utf8)))
    }

    @Test func `is written anew`() throws {
        let text =
            "{ \"jsonrpc\" : \"2.0\",\"id\":7, \"method\":\"tools\\u002fcall\", \"params\":{\"n\\u0061me\":\"list\\u005fissues\"}}"
        let judged = try judge(text)
        let wanted = #"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_issues"}}"#
        #expect(String(decoding: judged.message.bytes, as: UTF8.self) == wanted)
        #expect(judged.tool == "list_issues")
    }

    @Test(arguments: [
        // Not JSON that every parser reads in one way.
        "", "{", "null", "7", #""x""#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","m\u0065thod":"tools/call"}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1e999}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"\ud800"}}"#,
        // Batches.
        "[]", #"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#, #"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
        // No messages.
        "{}", #"{"jsonrpc":"2.0","id":1}"#, #"{"id":1,"method":"ping"}"#, #"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        #"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
        #"{"jsonrpc":"2.0","id":1,"method":null}"#, #"{"jsonrpc":"2.0","result":{}}"#,
        #"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, #"{"jsonrpc":"2.0","id":1,"result":{},"Method":"x"}"#,
        #"{"jsonrpc":"2.0","id":1,"result":7}"#,
        // Ids.
        #"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        #"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#,
        #"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
    ])
    func `is nothing that two parsers may read in two ways`(text: String) {
        #expect(refusal(text).map { !$0.isDenial } == true, "\(String(describing: refusal(text)))")
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///"}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/Call","params":{"name":"list_issues"}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"list_issues"}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#, #"{"jsonrpc":"2.0","id":1,"method":""}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","x":1}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#,
        // A notification that is none, and a request that is one.
        #"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_issues"}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled"}"#,
        `What an exposed socket sends to an MCP server`.call(#""delete_issue""#),
        `What an exposed socket sends to an MCP server`.call(#""list_issues ""#),
        `What an exposed socket sends to an MCP server`.call(#""LIST_ISSUES""#),
        // The Kelvin sign, which Swift's == takes for the letter K.
        `What an exposed socket sends to an MCP server`.call(#""get_\u212a""#),
        `What an exposed socket sends to an MCP server`.call(#"["list_issues"]"#),
        `What an exposed socket sends to an MCP server`.call(#"null"#),
        `What an exposed socket sends to an MCP server`.call(#""list_issues","Name":"delete_issue""#),
        #"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
    ])
    func `is no other method and no other tool`(text: String) {
        #expect(refusal(text)?.isDenial == true, "\(String(describing: refusal(text)))")
    }

    @Test func `is any tool without a list, but for names that no tool has`() throws {
        let any = MessageRule(tools: nil)
        #expect(try judge(Self.call(#""delete_issue""#), any).tool == "delete_issue")
        for name in [#""a\u0000""#, #""a\r\nb""#, #""a\u200b""#, #""""#, #""\u202ea""#, "7"] {
            #expect(refusal(Self.call(name), any)?.method == "tools/call", "\(name)")
        }
        #expect(refusal(Self.call("\"\(String(repeating: "x", count: 257))\""), any) != nil)
    }

    @Test func `is what the methods name`() throws {
        let rule = MessageRule(tools: nil, methods: ["resources/read"])
        _ = try judge(#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#, rule)
        #expect(refusal(#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, rule)?.method == "tools/list")
    }

    @Test func `is bounded in depth, in values and in bytes`() throws {
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        #expect(refusal(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":\#(deep)}}"#) != nil)
        let many = "[" + Array(repeating: "0", count: 200_001).joined(separator: ",") + "]"
        #expect(refusal(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":\#(many)}}"#) != nil)
        let long = String(repeating: "x", count: MessageRule.limit)
        #expect(refusal(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"\#(long)"}}"#) != nil)
    }
}

@Suite struct `A request of an exposed socket's program` {
    private let ids = BoundIDs { "mark-\($0.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF })" }
    private let rule = MessageRule(tools: ["a"])
    private let list = Array(#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.utf8)

    private func request(
        _ method: String = "POST", _ fields: [(String, String)] = [], _ body: [UInt8]? = nil,
        _ parameters: ToolParameters = ToolParameters()
    ) throws(RestrictedRequest.Refusal) -> RestrictedRequest {
        let asked = RelayRequest(account: "linear", method: method, fields: fields.map { .init($0.0, $0.1) })
        return try RestrictedRequest(asked, body: body ?? (method == "POST" ? list : []), rule, ids, parameters)
    }

    private func refusal(_ method: String, _ fields: [(String, String)]) -> RestrictedRequest.Refusal? {
        do throws(RestrictedRequest.Refusal) {
            _ = try request(method, fields)
            return nil
        } catch {
            return error
        }
    }

    @Test func `has only sessions and events of this socket`() throws {
        let session = try #require(ids.bind("s1", .session))
        #expect(try request("POST", [("Mcp-Session-Id", session)]).fields.contains(.init("Mcp-Session-Id", "s1")))
        #expect(refusal("POST", [("Mcp-Session-Id", "s1")]) == .unknownSession)
        #expect(refusal("POST", [("Mcp-Session-Id", session + "x")]) == .unknownSession)
        let event = try #require(ids.bind("e1", .event))
        #expect(refusal("POST", [("Mcp-Session-Id", event)]) == .unknownSession)
        #expect(try request("GET", [("Last-Event-ID", event)]).fields.contains(.init("Last-Event-ID", "e1")))
        #expect(refusal("GET", [("Last-Event-ID", "e1")]) == .noStream)
        #expect(refusal("GET", []) == .noStream)
        #expect(refusal("DELETE", [("Last-Event-ID", event)]) == .noStream)
        #expect(try request("DELETE", [("Mcp-Session-Id", session)]).body.isEmpty)
        #expect(ids.bind("a b", .session) == nil && ids.bind("", .event) == nil)
    }

    private func call(_ arguments: String) -> [UInt8] {
        Array(
            (#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":\#(arguments),"_meta":"#
                + #"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#).utf8)
    }

    @Test func `has header fields that say what the message says`() throws {
        let fields = [
            ("Mcp-Name", "b"), ("Mcp-Method", "tools/list"), ("Accept", "x"), ("Mcp-Param-X", "1"),
            ("Mcp-Param-Tenant", "theirs"),
        ]
        let request = try request("POST", fields, call(#"{"tenant":"ours","title":"theirs"}"#), parameters("Tenant"))
        let named = Dictionary(request.fields.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
        #expect(named["mcp-name"] == "a" && named["mcp-method"] == "tools/call")
        #expect(named["accept"] == "application/json, text/event-stream")
        #expect(named["mcp-param-tenant"] == "ours" && named["mcp-param-x"] == nil)
        #expect(named.count == request.fields.count)
    }

    /// What the relay has learned of a list in which a parameter of the tool `a` has a field.
    private func parameters(_ field: String) throws -> ToolParameters {
        let list =
            #"{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"properties":{"tenant":"#
            + #"{"type":"string","x-mcp-header":"\#(field)"}}}}]}}"#
        var response = RestrictedResponse(ResponseRule(rule, secrets: []), ids, request: nil, listsTools: true)
        _ = response.head(status: 200, contentType: "application/json", session: nil, retryAfter: nil)
        _ = response.take(Array(list.utf8))
        _ = response.finish()
        var parameters = ToolParameters()
        for list in response.takeLists() { parameters.learn(from: list) }
        return parameters
    }

    @Test func `is refused if a field cannot be made from the message`() throws {
        let long = String(repeating: "x", count: 20_000)
        for (arguments, field) in [(#"{"tenant":"\#(long)"}"#, "Tenant"), (#"{"tenant":"a"}"#, "no field")] {
            #expect(throws: RestrictedRequest.Refusal.self) {
                try request("POST", [], call(arguments), parameters(field))
            }
        }
        // No list has come through the socket yet: the program's own fields are not sent.
        let unknown = try request("POST", [("Mcp-Param-Tenant", "a")], call(#"{"tenant":"a"}"#))
        #expect(!unknown.fields.contains { $0.name.lowercased().hasPrefix("mcp-param-") })
    }
}

@Suite struct `What an exposed socket passes on of a server` {
    private static let token = "secret-token-\"1"
    private let rule = ResponseRule(MessageRule(tools: ["a"]), secrets: [token, "short"])
    private let ids = BoundIDs { "m\($0.utf8.count)" }

    private func passed(_ text: String) -> String? {
        if case .message(let bytes) = rule.judge(Array(text.utf8)) {
            String(decoding: bytes, as: UTF8.self)
        } else {
            nil
        }
    }

    @Test func `is a list of the tools that are allowed`() {
        let list = #"{"id":1,"result":{"tools":[{"name":"a","x":1},{"name":"b"},{"name":7},"a"],"nextCursor":"c"}}"#
        #expect(passed(list) == #"{"id":1,"result":{"tools":[{"name":"a","x":1}],"nextCursor":"c"}}"#)
        #expect(passed(#"{"id":1,"result":{"tools":{"name":"b"}}}"#) == nil)
        #expect(passed(#"{"id":1,"result":{"content":[{"name":"b"}]}}"#) != nil)
    }

    @Test(arguments: [
        #"{"id":1,"result":{"text":"x secret-token-\"1 y"}}"#, #"{"id":1,"result":{"secret-token-\"1":1}}"#,
        #"{"id":1,"result":{"text":"\u0073ecret-token-\u00221"}}"#, #"{"id":"secret-token-\"1","result":{}}"#,
        #"{"method":"notifications/message","params":{"data":["secret-token-\"1"]}}"#,
    ])
    func `is never the token`(text: String) {
        guard case .withheld(.secret, let id) = rule.judge(Array(text.utf8)) else {
            Issue.record("\(text) is passed on")
            return
        }
        let error = id.map { String(decoding: ResponseRule.error(.secret, for: $0), as: UTF8.self) } ?? ""
        #expect(!error.contains("secret-token"))
    }

    private func response(_ type: String, _ pieces: [String], status: Int = 200) throws -> (RelayHead, String) {
        let id = try Message(parsing: Array(#"{"id":5,"method":"x"}"#.utf8)).request
        var response = RestrictedResponse(rule, ids, request: id)
        let head = response.head(status: status, contentType: type, session: "s", retryAfter: "x")
        var bytes: [UInt8] = []
        for piece in pieces { bytes += response.take(Array(piece.utf8)) ?? Array("BROKEN".utf8) }
        return (head, String(decoding: bytes + response.finish(), as: UTF8.self))
    }

    @Test func `is judged in JSON and in streams alike`() throws {
        let list = #"{"id":5,"result":{"tools":[{"name":"b"},{"name":"a"}]}}"#
        let wanted = #"{"id":5,"result":{"tools":[{"name":"a"}]}}"#
        let (head, json) = try response(
            "application/json; charset=utf-8", [String(list.prefix(9)), String(list.dropFirst(9))])
        #expect(json == wanted && head.field("mcp-session-id") == "m9.s" && head.field("retry-after") == nil)
        let (_, events) = try response(
            "text/event-stream",
            ["id: e1\r\nretry: 5\r\nevent: x\ndata: \(list)\n", "\n: c\n\ndata: secret-token-\"1\n\n"])
        #expect(events == "retry: 5\nid: m8.e1\nevent: x\ndata: \(wanted)\n\n\n")
        let (_, primed) = try response(
            "text/event-stream", ["id: e1\ndata:\n\nid: secret-token-\"1\ndata: {\"a\":1}\n\n"])
        #expect(primed == "id: m8.e1\ndata:\n\nid:\ndata: {\"a\":1}\n\n")
    }

    @Test(arguments: [
        ("application/json", #"{"id":5,"result":"#, ""), ("text/event-stream", "data: {\"id\":5,", "data: "),
        ("text/event-stream", "id: 123456789012345", "data: "),
    ])
    func `is an error where the response is given up`(type: String, start: String, prefix: String) throws {
        let id = try Message(parsing: Array(#"{"id":5,"method":"x"}"#.utf8)).request
        var response = RestrictedResponse(rule, ids, request: id)
        _ = response.head(status: 200, contentType: type, session: nil, retryAfter: nil)
        #expect(response.take(Array(start.utf8)) == [] && response.held >= 14)
        let text = String(decoding: response.giveUp(), as: UTF8.self)
        #expect(text.hasPrefix(prefix + "{") && text.contains(#""id":5"#) && text.contains("response_withheld"))
        #expect(response.takeWithheld() == [.crowded])
    }

    @Test(arguments: [
        "secret-token-", "x", "secret-token-\\\"2", "SECRET-TOKEN-\\\"1", "ecret-token-\\\"1 secret-token",
    ])
    func `is what only resembles the token`(text: String) {
        #expect(passed(#"{"id":1,"result":"\#(text)"}"#) != nil)
    }

    @Test func `is an error in place of what cannot be passed on`() throws {
        let echo = try response("application/json", [#"{"id":5,"result":{"t":"secret-token-\"1"}}"#]).1
        #expect(echo.contains(#""code":"response_withheld""#) && echo.contains(#""id":5"#), "\(echo)")
        #expect(try response("application/json", ["no JSON"]).1.contains(#""id":5"#))
        #expect(try response("application/json", [String(repeating: "x", count: 5 << 20)]).1.contains(#""id":5"#))
        #expect(try response("text/html", ["secret"]).1 == "")
        #expect(try response("application/json", ["<html>"], status: 500).1 == "")
    }
}
