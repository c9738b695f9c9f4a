import MCPBridge
import RingbackBase
import Testing

@Suite struct `A bridge with a session of an older revision` {
    @Test func `sends session and revision with everything after initialize`() throws {
        var played = Played.session()
        let stream = played.last
        #expect(played.request(stream)?.method == "GET")
        #expect(played.field("Accept", of: stream) == "text/event-stream")
        let call = played.client(Played.call)
        #expect(played.field("Mcp-Session-Id", of: call) == "s1")
        #expect(played.field("MCP-Protocol-Version", of: call) == "2025-06-18")
        #expect(played.field("Mcp-Method", of: call) == nil)
        #expect(played.field("Content-Type", of: call) == "application/json")
        played.respond(call, 200, Played.done)
        #expect(played.written == [try JSON(parsing: Array(Played.done.utf8))])
    }

    @Test func `holds what comes before the session is there`() {
        var played = Played()
        let first = played.client(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        #expect(played.field("Mcp-Session-Id", of: first) == nil)
        #expect(played.client(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#) == 0)
        #expect(played.client(Played.list) == 0)
        played.respond(
            first, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}"#,
            ["Mcp-Session-Id": "s1"])
        #expect(played.open.count == 1)
        let second = played.last
        #expect(played.field("Mcp-Session-Id", of: second) == "s1")
        played.respond(second, 202)
        // The list, and the standing stream.
        #expect(played.open.count == 2)
    }

    @Test func `passes events on, and is answered by the one with its id`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 200, "text/event-stream")
        played.event(
            call, "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\ndata: \"params\":{}}\n\n")
        #expect(played.written.count == 1)
        #expect(played.written.first?["method"] == "notifications/progress")
        played.event(call, "data: \(Played.done)\n\n")
        #expect(played.written.count == 2)
        played.lose(call)
        #expect(played.open.count == 1 && played.bridge.deadline == nil)
    }

    @Test func `refreshes a refused token once and sends the message again`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 401, nil, token: "feed")
        #expect(played.closed.contains(call))
        let again = played.last
        #expect(played.request(again)?.rejected == "feed")
        #expect(played.open[again]?.body?["id"] == 2)
        played.respond(again, 401)
        #expect(played.written.count == 1)
        #expect(played.written.first?["error"]?["message"]?.string?.contains("ringback login linear") == true)
    }

    @Test func `begins a new session when the server forgot it, and sends what was refused`() {
        var played = Played.session()
        let call = played.client(Played.call)
        let list = played.client(Played.list)
        played.head(call, 404, nil)
        let replay = played.last
        #expect(played.open[replay]?.body?["method"] == "initialize")
        #expect(played.field("Mcp-Session-Id", of: replay) == nil)
        // Another message finds the same out.
        played.head(list, 404, nil)
        played.respond(
            replay, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
            ["Mcp-Session-Id": "s2"])
        // The client has asked for no second response to `initialize`.
        #expect(played.written.isEmpty)
        let note = played.last
        #expect(played.open[note]?.body?["method"] == "notifications/initialized")
        #expect(played.field("Mcp-Session-Id", of: note) == "s2")
        played.respond(note, 202)
        let methods = played.open.values.compactMap { $0.body?["method"]?.string }.sorted()
        #expect(methods == ["tools/call", "tools/list"])
        #expect(played.open.values.count { $0.request.method == "GET" } == 1)
        for number in played.open.keys { #expect(played.field("Mcp-Session-Id", of: number) == "s2") }
    }

    @Test func `gives up when the new session is refused too`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 404, nil)
        played.respond(played.last, 404)
        #expect(played.written.map { $0["id"] } == [2])
        #expect(played.written.first?["error"] != nil)
        // The session is begun anew with the next message, not in a circle.
        #expect(played.open.isEmpty && played.bridge.deadline == nil)
        let list = played.client(Played.list)
        #expect(played.field("Mcp-Session-Id", of: list) == "s1")
        played.head(list, 404, nil)
        #expect(played.open[played.last]?.body?["method"] == "initialize")
    }

    /// A session that the server has forgotten is begun again, up to the response to `initialize`.
    private static func beginAgain(_ played: inout Played, _ id: String) {
        #expect(played.open[played.last]?.body?["method"] == "initialize")
        played.respond(
            played.last, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
            ["Mcp-Session-Id": id])
        #expect(played.open[played.last]?.body?["method"] == "notifications/initialized")
        #expect(played.field("Mcp-Session-Id", of: played.last) == id)
    }

    @Test func `begins a new session when the server forgot it before it took notifications initialized`() {
        var played = Played()
        let first = played.client(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        played.respond(
            first, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
            ["Mcp-Session-Id": "s1"])
        let confirmation = played.client(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        #expect(played.client(Played.list) == 0)
        played.head(confirmation, 404, nil)
        Self.beginAgain(&played, "s2")
        played.respond(played.last, 202)
        let methods = played.open.values.map { $0.body?["method"]?.string ?? $0.request.method }.sorted()
        #expect(methods == ["GET", "tools/list"])
        for number in played.open.keys { #expect(played.field("Mcp-Session-Id", of: number) == "s2") }
    }

    @Test func `answers at once when the new session ends before it can be used`() {
        var played = Played.session()
        played.head(played.client(Played.call), 404, nil)
        Self.beginAgain(&played, "s2")
        played.respond(played.last, 404)
        #expect(played.written.map { $0["id"] } == [2] && played.written.first?["error"] != nil)
        played.head(played.client(Played.list), 404, nil)
        Self.beginAgain(&played, "s3")
        played.respond(played.last, 202)
        #expect(played.open.values.contains { $0.body?["method"] == "tools/list" })
    }

    @Test func `does not repeat a call whose response had begun when the server forgot the session`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 200, "text/event-stream")
        played.event(call, "id: e1\ndata:\n\n")
        played.lose(call)
        played.wait()
        played.head(played.last, 404, nil)
        #expect(played.written.map { $0["id"] } == [2])
        #expect(played.written.first?["error"]?["message"]?.string?.contains("may have been carried out") == true)
        #expect(!played.open.values.contains { $0.body?["method"] == "tools/call" })
        played.head(played.client(Played.list), 404, nil)
        Self.beginAgain(&played, "s2")
    }

    @Test func `finds by its stream that the server forgot the session`() {
        var played = Played.session()
        let stream = played.last
        played.head(stream, 200, "text/event-stream")
        played.lose(stream)
        played.wait()
        played.head(played.last, 404, nil)
        Self.beginAgain(&played, "s2")
        played.respond(played.last, 202)
        #expect(played.open.count == 1 && played.request(played.last)?.method == "GET")
        #expect(played.field("Mcp-Session-Id", of: played.last) == "s2" && played.written.isEmpty)
        // A server that has no streams may respond so to the first request for one.
        played.respond(played.last, 404)
        #expect(played.open.isEmpty && played.bridge.deadline == nil)
    }

    @Test func `begins a session again for its stream once, until the client says something`() {
        var played = Played.session()
        /// The stream ends, and the server says of its next request that there is no such session.
        func loseStream() {
            let stream = played.last
            played.head(stream, 200, "text/event-stream")
            played.lose(stream)
            played.wait()
            played.respond(played.last, 404)
        }
        loseStream()
        Self.beginAgain(&played, "s2")
        played.respond(played.last, 202)
        loseStream()
        #expect(played.open.isEmpty && played.bridge.deadline == nil)
        played.head(played.client(Played.list), 404, nil)
        Self.beginAgain(&played, "s3")
        played.respond(played.last, 202)
        let list = played.open.first { $0.value.body?["method"] == "tools/list" }?.key ?? 0
        played.respond(list, 200, #"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#)
        loseStream()
        Self.beginAgain(&played, "s4")
    }

    @Test func `sends notifications initialized again when the connection broke, since later messages wait for it`() {
        var played = Played()
        let first = played.client(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        played.respond(
            first, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
            ["Mcp-Session-Id": "s1"])
        let confirmation = played.client(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        #expect(played.client(Played.list) == 0)
        played.tell(.reply(confirmation, .sending))
        played.lose(confirmation)
        played.wait()
        #expect(played.open[played.last]?.body?["method"] == "notifications/initialized")
        played.respond(played.last, 202)
        // The list, and the standing stream.
        #expect(played.open.count == 2 && played.notes.isEmpty)
    }

    @Test func `does not hold messages for an initialize that was cancelled and lost`() {
        var played = Played()
        let first = played.client(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        #expect(played.client(Played.list) == 0)
        played.client(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#)
        played.lose(first)
        #expect(played.written.isEmpty && played.open.values.contains { $0.body?["method"] == "tools/list" })
    }

    @Test func `resumes a stream that broke after its last event`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 200, "text/event-stream")
        played.event(
            call, "retry: 300\nid: e1\ndata:\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\nid: e3\ndata: {"
        )
        played.lose(call)
        #expect(played.bridge.deadline == .milliseconds(300))
        played.wait()
        let resumed = played.last
        #expect(played.request(resumed)?.method == "GET")
        // The event that was cut off comes again.
        #expect(played.field("Last-Event-ID", of: resumed) == "e2")
        played.head(resumed, 200, "text/event-stream")
        played.event(resumed, "data: \(Played.done)\n\n")
        #expect(played.written.map { $0["method"] ?? $0["id"] } == ["x", 2])
    }

    @Test func `does not repeat what may have been done`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.tell(.reply(call, .sending))
        played.lose(call)
        #expect(played.written.first?["error"]?["message"]?.string?.contains("may have been carried out") == true)
        // What changes nothing is sent once more.
        let list = played.client(Played.list)
        played.tell(.reply(list, .sending))
        played.lose(list)
        played.wait()
        let again = played.last
        #expect(played.open[again]?.body?["method"] == "tools/list")
        played.tell(.reply(again, .sending))
        played.lose(again)
        #expect(played.written.count == 2)
        // What was never sent is sent again in any case.
        let third = played.client(Played.call)
        played.lose(third)
        played.wait()
        #expect(played.open[played.last]?.body?["method"] == "tools/call")
    }

    @Test func `cancels by a message, and says nothing of the request then`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.head(call, 200, "text/event-stream")
        let cancel = played.client(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#)
        #expect(played.open[cancel]?.body?["method"] == "notifications/cancelled")
        played.respond(cancel, 202)
        played.event(call, "data: \(Played.done)\n\n")
        played.lose(call)
        #expect(played.written.isEmpty && played.bridge.deadline == nil)
    }

    @Test func `carries the server's requests and the client's responses`() {
        var played = Played.session()
        let stream = played.last
        played.head(stream, 200, "text/event-stream")
        played.event(
            stream, "id: 4\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"sampling/createMessage\"}\n\n")
        #expect(played.written.first?["id"] == "q")
        let answer = played.client(#"{"jsonrpc":"2.0","id":"q","result":{}}"#)
        #expect(played.field("Mcp-Session-Id", of: answer) == "s1")
        played.respond(answer, 202)
        played.lose(stream)
        played.wait()
        #expect(played.field("Last-Event-ID", of: played.last) == "4")
    }

    @Test func `goes on without the stream of a server that has none`() {
        var played = Played.session()
        played.respond(played.last, 405)
        #expect(played.open.isEmpty && played.bridge.deadline == nil && played.written.isEmpty)
    }

    @Test func `ends the session when the client has gone`() {
        var played = Played.session()
        let call = played.client(Played.call)
        played.tell(.inputEnded)
        #expect(!played.isOver)
        played.respond(call, 200, Played.done)
        let end = played.last
        #expect(played.request(end)?.method == "DELETE")
        #expect(played.field("Mcp-Session-Id", of: end) == "s1")
        played.respond(end, 405)
        #expect(played.isOver && played.notes.isEmpty)
    }

    @Test func `does not wait for ever for the last responses`() {
        var played = Played.session()
        played.client(Played.call)
        played.tell(.inputEnded)
        played.wait()
        #expect(played.now == .seconds(5) && played.request(played.last)?.method == "DELETE")
        played.wait()
        #expect(played.isOver)
    }
}

@Suite struct `A bridge without a session` {
    private static let call = #"""
        {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"zähle","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        """#

    @Test func `derives the fields of each message`() {
        var played = Played()
        let call = played.client(Self.call)
        #expect(played.field("MCP-Protocol-Version", of: call) == "2026-07-28")
        #expect(played.field("Mcp-Method", of: call) == "tools/call")
        #expect(played.field("Mcp-Name", of: call) == "=?base64?esOkaGxl?=")
        #expect(played.field("Mcp-Session-Id", of: call) == nil)
        played.respond(
            call, 400, #"{"jsonrpc":"2.0","id":5,"error":{"code":-32022,"message":"v","data":{"supported":[]}}}"#)
        #expect(played.written.first?["error"]?["code"] == -32022)
        #expect(played.written.first?["error"]?["data"]?["supported"] == [])
    }

    @Test func `cancels by closing the stream`() {
        var played = Played()
        let call = played.client(Self.call)
        played.head(call, 200, "text/event-stream")
        #expect(played.client(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#) == 0)
        #expect(played.closed == [call] && played.open.isEmpty && played.written.isEmpty)
    }

    @Test func `gives an error of the server the id of its request`() {
        var played = Played()
        let call = played.client(Self.call)
        played.respond(call, 400, #"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header"}}"#)
        #expect(played.written.first?["id"] == 5 && played.written.first?["error"]?["code"] == -32020)
        played.respond(played.client(Self.call), 503)
        #expect(played.written.last?["error"]?["message"]?.string?.contains("HTTP 503") == true)
    }

    @Test func `follows the last slash, and no other redirect`() {
        var played = Played()
        let call = played.client(Self.call)
        var head = RelayHead(status: 307)
        head.movesSlash = true
        played.tell(.reply(call, .head(head)))
        #expect(played.request(played.last)?.togglesSlash == true)
        played.respond(played.last, 307)
        #expect(played.written.first?["error"]?["message"]?.string?.contains("HTTP 307") == true)
    }

    @Test func `names the scopes that are missing`() {
        var played = Played()
        let call = played.client(Self.call)
        var head = RelayHead(status: 403)
        head.missingScope = "a b"
        played.tell(.reply(call, .head(head)))
        played.open[call] = nil
        played.tell(.reply(call, .end))
        #expect(played.written.first?["error"]?["data"]?["command"] == "ringback login linear --scopes='a b'")
    }
}

@Suite struct `A bridge without a sign-in` {
    private let refusal = RelayRefusal(code: "sign_in_required", detail: "linear is not signed in.", needsSignIn: true)

    @Test func `says the command, waits once for initialize, then answers with an error`() {
        var played = Played()
        let first = played.client(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        #expect(played.request(first)?.signInWait == nil)
        played.tell(.reply(first, .refusal(refusal)))
        #expect(played.notes == ["linear is not signed in. Run: ringback login linear"])
        let second = played.last
        #expect(played.request(second)?.signInWait == 8)
        played.tell(.reply(second, .refusal(RelayRefusal(code: "timeout", detail: "It took longer."))))
        #expect(played.written.first?["error"]?["message"]?.string?.contains("ringback login linear") == true)
        #expect(played.written.first?["error"]?["data"]?["code"] == "sign_in_required")
        // Once is enough on standard error; the client may try again.
        let third = played.client(#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)
        played.tell(.reply(third, .refusal(refusal)))
        #expect(played.notes.count == 1)
        played.respond(played.last, 200, #"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#)
        #expect(played.written.last?["result"] != nil)
    }

    @Test func `answers other requests at once`() {
        var played = Played()
        let list = played.client(Played.list)
        played.tell(.reply(list, .refusal(refusal)))
        #expect(played.open.count == 1 && played.written.first?["id"] == 1)
        #expect(played.written.first?["error"]?["data"]?["command"] == "ringback login linear")
    }

    @Test func `passes other failures on as they are`() {
        var played = Played()
        let list = played.client(Played.list)
        played.tell(.reply(list, .refusal(RelayRefusal(code: "server_unreachable", detail: "h cannot be reached."))))
        #expect(played.written.first?["error"]?["message"] == "h cannot be reached.")
        #expect(played.written.first?["error"]?["data"]?["code"] == "server_unreachable")
    }
}
