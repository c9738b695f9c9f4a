import MCPBridge
import RingbackBase
import Terminal
import Testing

/// A response of the server, and what the client is to read of it.
private struct Failed: Sendable, CustomTestStringConvertible {
    var status: Int
    var type = "application/json"
    var body: String?
    var says: [String]
    var code = -32_000
    var testDescription: String { "\(status) \(body ?? "")" }

    init(_ status: Int, _ body: String?, _ says: String..., type: String = "application/json", code: Int = -32_000) {
        (self.status, self.body, self.says, self.type, self.code) = (status, body, says, type, code)
    }
}

private let cases = [
    Failed(500, #"{"error":"out of order"}"#, "HTTP 500: out of order."),
    Failed(404, #"{"detail":"Not Found"}"#, "HTTP 404: Not Found."),
    Failed(422, #"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "HTTP 422: field required."),
    Failed(400, #"{"error":"invalid_request","error_description":"no such tool"}"#, "HTTP 400: no such tool."),
    Failed(
        502, "<html><head><TITLE>502 Bad\nGateway</title></head></html>", "HTTP 502: 502 Bad Gateway.",
        type: "text/html"),
    Failed(503, "<p>", "HTTP 503.", type: "text/html"), Failed(500, nil, "HTTP 500."), Failed(500, "", "HTTP 500."),
    Failed(500, "Internal Server Error\n", "HTTP 500: Internal Server Error.", type: "text/plain"),
    Failed(500, "a\u{1B}[31m\u{202E}b", "HTTP 500: a?[31m?b.", type: "text/plain"),
    Failed(500, #"["first","second"]"#, "HTTP 500: first."), Failed(500, "null", "HTTP 500."),
    Failed(500, #"{"jsonrpc":"2.0","id":5,"error":"text"}"#, "HTTP 500: text."),
    Failed(500, #"{"jsonrpc":"2.0","id":5,"error":{"message":"no code"}}"#, "HTTP 500: no code."),
    Failed(500, #"{"jsonrpc":"2.0","id":5,"error":{"code":"E1","message":"a word"}}"#, "HTTP 500: a word."),
    Failed(500, #"{"jsonrpc":"2.0","id":5,"error":{"code":-32603}}"#, "HTTP 500.", code: -32_603),
    Failed(
        400, #"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no session"}}"#,
        "HTTP 400: no session.", code: -32_600),
    Failed(
        200, #"{"jsonrpc":"2.0","id":6,"error":{"code":-1,"message":"not yours"}}"#, "HTTP 200", "not yours", code: -1),
    Failed(200, #"{"jsonrpc":"2.0","id":6,"result":{}}"#, "HTTP 200"),
    Failed(
        200, #"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"both"}}"#, "HTTP 200", "both", code: 1),
    Failed(200, #"{"error":"text"}"#, "HTTP 200", "text"), Failed(200, "{}", "HTTP 200"), Failed(200, nil, "HTTP 200"),
    Failed(200, #"[{"jsonrpc":"2.0","id":5,"result":{}}]"#, "HTTP 200"), Failed(202, nil, "HTTP 202"),
    Failed(200, "<title>Sign in</title>", "HTTP 200", "Sign in", type: "text/html"),
    Failed(
        200, "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"error\":\"text\"}\n\n", "HTTP 200", "text",
        type: "text/event-stream"),
    Failed(200, "data: {\"error\":\"text\"}\n\n", "HTTP 200", "text", type: "text/event-stream"),
]
private let initialize = #"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#
private let call = #"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a"}}"#

@Suite struct `A response that is no response of JSON-RPC` {
    @Test(arguments: cases, [initialize, call])
    fileprivate func `becomes an error with the status and the server's reason`(failed: Failed, request: String) throws
    {
        var played = Played()
        played.respond(played.client(request), failed.status, failed.body, type: failed.type)
        let error = try #require(played.written.first?["error"])
        #expect(played.written.count == 1 && played.written[0]["jsonrpc"] == "2.0" && played.written[0]["id"] == 5)
        #expect(error["code"] == .integer(failed.code) && error["data"]?["status"] == .integer(failed.status))
        for text in failed.says {
            #expect(error["message"]?.string?.contains(text) == true, "\(error)")
        }
        // The bridge is ready for the next request.
        played.respond(played.client(Played.list), 200, #"{"jsonrpc":"2.0","id":1,"result":{}}"#)
        #expect(played.written.last?["id"] == 1 && played.written.last?["result"] != nil)
    }

    @Test(arguments: [#"{"jsonrpc":"2.0","id":5}"#, #"{"jsonrpc":"2.0","id":5,"error":"text"}"#])
    func `that follows the response on the same stream is not written: a request gets one response`(body: String) {
        var played = Played()
        let events = #"data: {"jsonrpc":"2.0","id":5,"result":{}}\#n\#ndata: \#(body)\#n\#n"#
        played.respond(played.client(call), 200, events, type: "text/event-stream")
        #expect(played.written.count == 1 && played.written.first?["result"] != nil, "\(played.written)")
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header"}}"#,
        #"{"jsonrpc":"2.0","error":{"code":-32020,"message":"header"}}"#,
    ]) func `but an error without an id gets the id of the request`(body: String) {
        for (status, type, body) in [
            (400, "application/json", body), (200, "application/json", body),
            (200, "text/event-stream", "data: \(body)\n\n"),
        ] {
            var played = Played()
            played.respond(played.client(call), status, body, type: type)
            #expect(played.written.first?["id"] == 5 && played.written.first?["error"]?["message"] == "header")
            #expect(played.written.first?["error"]?["code"] == -32_020)
        }
    }

    @Test(
        arguments: [
            ("30", " Try again in 30 s.", .integer(30)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "after Fri, 31 Dec", "Fri, 31 Dec 1999 23:59:59 GMT"),
        ] as [(String, String, JSON)])
    func `tells when to try again`(field: String, sentence: String, value: JSON) {
        var played = Played()
        played.respond(played.client(call), 503, #"{"error":"busy"}"#, ["Retry-After": field])
        let error = played.written.first?["error"]
        #expect(error?["message"]?.string?.contains("HTTP 503: busy.") == true)
        #expect(error?["message"]?.string?.contains(sentence) == true && error?["data"]?["retry_after"] == value)
    }

    @Test func `is never written as it is, also where nothing waits for it`() {
        var played = Played.session()
        let stream = played.last
        played.head(stream, 200, "text/event-stream")
        for text in [
            #"{"error":"x"}"#, #"{"id":9,"result":{}}"#, "[]", "x", #"{"jsonrpc":"2.0","method":"a","params":{"b":}}"#,
        ] {
            played.event(stream, "data: \(text)\n\n")
        }
        #expect(played.written.isEmpty && played.notes.count == 5)
        played.event(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n")
        #expect(played.written.count == 1)
    }

    @Test func `is not waited for where the request was too long, which gets an error with its id`() {
        var played = Played()
        var lines = JSONLines(limit: 8)
        for piece in lines.append(Array((call + "\n").utf8)) { played.tell(.line(piece)) }
        #expect(played.written.first?["id"] == 5 && played.written.first?["error"]?["code"] == -32_600)
        #expect(played.open.isEmpty)
    }
}

@Suite struct `The command in an error of a bridge` {
    private func command(_ played: Played) -> String? { played.written.last?["error"]?["data"]?["command"]?.string }

    @Test func `asks for a sign-in again after the server refused the token twice`() {
        var played = Played()
        let call = played.client(call)
        played.head(call, 401)
        played.respond(played.last, 401)
        #expect(command(played) == "ringback login linear --again")
        #expect(
            played.written.last?["error"]?["message"]?.string?.hasSuffix("Run: ringback login linear --again") == true)
    }

    @Test func `is told why the server refuses a proof, and the token is not replaced for that`() {
        var played = Played()
        let number = played.client(call)
        var head = RelayHead(status: 401)
        head.token = "feed"
        head.proofRefusal = "use_dpop_nonce"
        played.tell(.reply(number, .head(head)))
        played.tell(.reply(number, .end))
        let error = played.written.last?["error"]
        #expect(error?["data"]?["code"] == "proof_refused", "\(played.written)")
        #expect(error?["message"]?.string?.contains("use_dpop_nonce") == true)
        #expect(command(played) == nil)
    }

    @Test func `asks for a sign-in again if the refused token cannot be refreshed`() {
        var played = Played()
        played.head(played.client(call), 401)
        played.tell(
            .reply(played.last, .refusal(RelayRefusal(code: "sign_in_required", detail: "It ends.", needsSignIn: true)))
        )
        #expect(command(played) == "ringback login linear --again")
    }

    @Test(arguments: [
        ("notes:write", "--scopes=notes:write"), ("a b", "--scopes='a b'"), ("-h", "--scopes='-h'"),
        ("notes:write$(touch /tmp/x)", "--scopes='notes:write$(touch /tmp/x)'"), ("a'b`c`", "--scopes='a'\\''b`c`'"),
        ("a\u{202E} b c\nd \u{7}e f\"", "--scopes=b"), ("", "--again"), ("\n", "--again"),
        (String(repeating: "a ", count: 2_000), "--again"),
    ]) func `quotes the scopes that a server names`(scope: String, options: String) {
        var played = Played()
        let number = played.client(call)
        var head = RelayHead(status: 403)
        head.missingScope = scope
        played.tell(.reply(number, .head(head)))
        played.tell(.reply(number, .end))
        #expect(command(played) == "ringback login linear \(options)")
    }

    @Test func `is told with the reason for each request where there is no server at all`() {
        var played = Played()
        played.bridge = Bridge(
            refusing: RelayRefusal(code: "account_not_found", detail: "There is none."), command: "ringback accounts")
        played.client(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        played.client(initialize)
        #expect(played.open.isEmpty && played.written.count == 1 && played.notes.isEmpty)
        #expect(played.written[0]["id"] == 5 && played.written[0]["error"]?["message"] == "There is none.")
        #expect(command(played) == "ringback accounts")
        played.client(Played.list)
        #expect(played.written.count == 2)
        played.tell(.inputEnded)
        #expect(played.isOver)
    }
}
