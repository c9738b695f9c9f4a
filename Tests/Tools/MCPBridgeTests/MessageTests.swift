import MCPBridge
import RingbackBase
import Testing

@Suite struct `Messages on standard input` {
    @Test(arguments: [1, 2, 3, 7, 100]) func `are the same however they are cut`(size: Int) {
        let bytes = Array("{\"a\":1}\n\n  \r\n{\"b\":\"ü\"}\r\n{\"c\":3}".utf8)
        var lines = JSONLines()
        var pieces: [JSONLines.Piece] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            pieces += lines.append(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        if let last = lines.finish() { pieces.append(last) }
        #expect(
            pieces == ["{\"a\":1}", "{\"b\":\"ü\"}\r", "{\"c\":3}"].map { .message(Array($0.utf8)) })
    }

    @Test func `are bounded, and the next line is read again`() {
        var lines = JSONLines(limit: 4)
        #expect(lines.append(Array("12345678".utf8)) == [])
        #expect(lines.pending == 0)
        #expect(lines.append(Array("9\n12\n".utf8)) == [.tooLong(nil), .message(Array("12".utf8))])
    }

    @Test(
        arguments: [
            (#"{"id":7,"method":"a","params":{"id":1,"x":"LONG"}}"#, "7"),
            (#"{"method":"a","params":{"x":["LONG",{"id":9}]},"jsonrpc":"2.0" , "id" : "b\"c" }"#, #""b\"c""#),
            (#"{"method":"a","params":{"x":"LONG\\"},"id":-1}"#, "-1"),
            // A notification, a response, two ids, no id, not JSON.
            (#"{"method":"a","params":{"id":1,"x":"LONG"}}"#, nil), (#"{"id":7,"result":"LONG"}"#, nil),
            (#"{"id":7,"id":8,"method":"LONG"}"#, nil), (#"{"id":[1],"method":"LONG"}"#, nil),
            (#"{"id":"LONG","method":"a"}"#, nil), ("LONG", nil),
        ] as [(String, String?)], [1, 7, 4_096])
    func `that are too long leave the id of a request`(line: (text: String, id: String?), size: Int) {
        var lines = JSONLines(limit: 20)
        let bytes = Array((line.text.replacing("LONG", with: String(repeating: "x", count: 2_000)) + "\n").utf8)
        var pieces: [JSONLines.Piece] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            pieces += lines.append(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        guard case .tooLong(let id)? = pieces.first, pieces.count == 1 else {
            Issue.record("\(pieces)")
            return
        }
        #expect(id.map { String(decoding: $0.bytes, as: UTF8.self) } == line.id)
    }

    @Test func `become one line`() {
        #expect(JSONLines.line(of: Array("{\n\"a\":\r\n1}".utf8)) == Array("{ \"a\":  1}\n".utf8))
    }

    private func message(_ text: String) throws -> Message { try Message(parsing: Array(text.utf8)) }

    @Test(arguments: [1, 2, 63, 64, 65, 66, 128, 129, 511])
    func `may be nested in 512 levels, each closed by its own bracket`(
        depth: Int
    ) throws {
        let opening = (0..<depth).map { $0 % 3 == 0 ? "{\"a\":" : "[" }
        let closing = (0..<depth).reversed().map { $0 % 3 == 0 ? "}" : "]" }
        let text = { (closing: [String]) in
            #"{"id":7,"result":["# + opening.joined() + "1" + closing.joined() + #"],"method":"x"}"#
        }
        #expect(try message(text(closing)).method == "x")
        for place in [0, depth / 2, depth - 1] {
            var wrong = closing
            wrong[place] = closing[place] == "}" ? "]" : "}"
            #expect(throws: Message.Failure.malformed) { try message(text(wrong)) }
        }
        let tooDeep = String(repeating: "[", count: 513) + String(repeating: "]", count: 513)
        #expect(throws: Message.Failure.malformed) { try message(#"{"id":7,"result":\#(tooDeep)}"#) }
    }

    @Test func `are told apart`() throws {
        #expect(try message(#"{"id":"a","method":"ping"}"#).request != nil)
        #expect(try message(#"{"method":"x"}"#).kind == .notification)
        #expect(try message(#"{"id":1,"result":{}}"#).request == nil)
        #expect(try message(#"{"id":null,"error":{"code":1,"message":""}}"#).isError)
        let meta = #"{"method":"tools/call","id":1,"params":{"arguments":{"name":"no"},"name":"yes"}}"#
        #expect(try message(meta).subject == "yes")
        #expect(try message(#"{"method":"tools/list","id":1,"params":{"name":"no"}}"#).subject == nil)
        #expect(try message(#"{"method":"resources/read","id":1,"params":{"uri":"a:b"}}"#).subject == "a:b")
    }

    @Test(arguments: [
        "", "7", "{", "{}", #"{"id":1}"#, #"{"method":1,"id":1}"#, #"{"method":"a","method":"b"}"#,
        #"{"id":null,"method":"a"}"#, #"{"id":{},"method":"a"}"#, #"{"method":"a"}x"#, #"{"method":"a","params":[}}"#,
        #"{"method":"a","x":tru}"#, #"{"method":"a","x":{"y":}}"#, #"{"method":"a","x":[1,]}"#,
        #"{"method":"a","x":[1 2]}"#,
        #"{"method":"a","x":{1:2}}"#, #"{"method":"a","x":{"y" 2}}"#, #"{"method":"a","x":["\x"]}"#,
        #"{"method":"a","x":["\u12g4"]}"#, #"{"method":"a","x":[01]}"#, #"{"method":"a","x":[NaN]}"#,
    ]) func `are refused if two readers could read them in two ways`(text: String) {
        #expect(throws: Message.Failure.malformed) { try message(text) }
    }

    @Test func `are refused in batches`() {
        #expect(throws: Message.Failure.batch) { try message(#" [{"id":1,"method":"ping"}]"#) }
    }

    @Test func `have ids that compare as what they mean`() throws {
        let plain = try message(#"{"id":"A","method":"ping"}"#).request
        #expect(try message(#"{"id":"\u0041","method":"ping"}"#).request == plain)
        let big = try message(#"{"id":12345678901234567890,"method":"ping"}"#).request
        #expect(try message(#"{"id":12345678901234567891,"method":"ping"}"#).request != big)
        #expect(try message(#"{"id":"1","method":"ping"}"#).request != message(#"{"id":1,"method":"ping"}"#).request)
    }
}

@Suite struct `What goes to an MCP server` {
    @Test func `is a list of fields`() {
        for name in ["Authorization", "Host", "Cookie", "Origin", "Content-Length", "Transfer-Encoding"] {
            #expect(!FieldRules.isRequested(name))
            #expect(!FieldRules.isReturned(name))
        }
        #expect(FieldRules.isRequested("MCP-Session-ID") && !FieldRules.isReturned("Set-Cookie"))
        let line = #"{"account":"a","method":"POST","length":0,"fields":[["Cookie","x"]]}"#
        #expect(RelayRequest(parsing: Array(line.utf8)) == nil)
        #expect(RelayRequest(parsing: Array(line.replacing("Cookie", with: "Accept").utf8)) != nil)
        let injected = line.replacing("[\"Cookie\",\"x\"]", with: #"["Mcp-Name","a\r\nCookie: b"]"#)
        #expect(RelayRequest(parsing: Array(injected.utf8)) == nil)
    }

    @Test(arguments: [
        ("count", "count"), ("", ""), ("a b", "a b"), (" a", "=?base64?IGE=?="), ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("ü", "=?base64?w7w=?="), ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ]) func `is one line of ASCII`(text: String, value: String) {
        #expect(FieldRules.value(text) == value)
    }

    @Test(arguments: [
        (307, "https://a.example/mcp/", true), (308, "/mcp/", true), (302, "/mcp/", false), (307, "/mcp", false),
        (307, "https://b.example/mcp/", false), (307, "http://a.example/mcp/", false), (307, "//b.example/mcp/", false),
        (307, "/mcp/?a=b", false), (307, "/other/", false), (307, "/mcp/#a", false), (308, "/mcp//", false),
    ]) func `follows a redirect to the other last slash alone`(status: Int, location: String, isAllowed: Bool) throws {
        let url = try WebURL(parsing: "https://a.example/mcp")
        #expect(RedirectRule.allows(status, from: url, to: location) == isAllowed)
        #expect(RedirectRule.toggled(url)?.text == "https://a.example/mcp/")
    }
}

@Suite struct `Bridge and relay` {
    @Test func `understand each other`() {
        var request = RelayRequest(
            account: "linear", method: "POST", fields: [.init("Mcp-Name", "a \"b\"")], length: 12)
        request.rejected = String(repeating: "0a", count: 32)
        request.signInWait = 8
        request.togglesSlash = true
        #expect(RelayRequest(parsing: Array(request.line.dropLast())) == request)
        var head = RelayHead(status: 200, fields: [.init("Content-Type", "text/event-stream")])
        head.token = "aa"
        head.missingScope = "a"
        head.proofRefusal = "use_dpop_nonce"
        let replies: [RelayReply] = [.sending, .head(head), .piece([1, 2, 10]), .piece([0]), .end]
        var reader = RelayReplyReader()
        var read: [RelayReply] = []
        for byte in replies.flatMap(\.bytes) { read += reader.append([byte]) ?? [] }
        #expect(read == [.sending, .head(head), .piece([1]), .piece([2]), .piece([10]), .piece([0]), .end])
        var whole = RelayReplyReader()
        #expect(whole.append(replies.flatMap(\.bytes)) == replies)
    }

    @Test func `end at once when they do not`() {
        var reader = RelayReplyReader()
        #expect(reader.append(Array("HTTP/1.1 200 OK\n".utf8)) == nil)
        var other = RelayReplyReader()
        #expect(other.append(RelayReply.head(RelayHead(status: 200)).bytes + [0xFF, 0, 0, 0]) == nil)
    }
}

@Suite struct `A message of a server` {
    @Test(arguments: [
        (#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
        (#"{"jsonrpc":"2.0","id":"a","result":[{"a":[{},[],-1.5e3]}]}"#, true),
        (#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#, true),
        (#"{"jsonrpc":"2.0","error":{"message":"no","code":1,"data":[]}}"#, true),
        (#"{"jsonrpc":"2.0","method":"notifications/x"}"#, true),
        (#"{"jsonrpc":"2.0","method":"x","id":1,"params":[]}"#, true),
        (#"{"id":1,"result":{}}"#, false), (#"{"jsonrpc":"1.0","id":1,"result":{}}"#, false),
        (#"{"jsonrpc":2.0,"id":1,"result":{}}"#, false), (#"{"jsonrpc":"2.0","id":null,"result":{}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, false), (#"{"jsonrpc":"2.0","id":1,"error":null}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"no"}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#, false),
        (#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#, false),
        (#"{"jsonrpc":"2.0","method":"x","params":"y"}"#, false),
        (#"{"jsonrpc":"2.0","method":"x","params":null}"#, false),
    ]) func `is one of JSON-RPC only in its own form`(text: String, isConformant: Bool) throws {
        #expect(try Message(parsing: Array(text.utf8), isFromServer: true).isConformant == isConformant)
    }

    @Test func `is none with bytes that are not UTF-8`() {
        let bytes = Array(#"{"jsonrpc":"2.0","id":1,"result":""#.utf8) + [0xFF] + Array("\"}".utf8)
        #expect(throws: Message.Failure.malformed) { try Message(parsing: bytes, isFromServer: true) }
    }
}
