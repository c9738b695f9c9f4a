import MCPBridge
import OAuth
import RingbackBase
import Terminal

/// What an MCP server says of its authorization. The first line of an input is the server's URL, the second one its
/// challenge, the rest its metadata: they lead to no place of this machine, unless the server is there.
enum MCPServerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (address, rest) = bytes.headLineAndRest
        let (field, body) = rest.headLineAndRest
        guard let server = try? MCPServer(parsing: address.isEmpty ? "https://mcp.example/mcp" : address) else {
            return
        }
        let again = try MCPServer(parsing: server.resource)
        try hold("an identifier is canonical", again.resource == server.resource)
        try hold("an identifier is of the same server", again.url.origin == server.url.origin)
        let challenge = BearerChallenge(in: HTTPFields([("WWW-Authenticate", field)]))
        for scope in challenge?.scopes ?? [] {
            try hold("a scope is one word", !scope.isEmpty && scope.utf8.allSatisfy(ScopeList.isCharacter))
        }
        for request in (try? server.metadataRequests(challenge)) ?? [] {
            try hold(request.url, namedBy: server.url)
            let isHome = try WebURL(parsing: request.url).origin == server.url.origin
            try hold("without a challenge the server is asked", challenge?.resourceMetadata != nil || isHome)
        }
        let response = HTTPResponse(status: 200, body: Secret(bytes: body))
        guard let resource = try? ProtectedResource(parsing: response, of: server) else { return }
        try hold("there is an issuer", !resource.authorizationServers.isEmpty)
        try hold("metadata are of the same host", WebURL(parsing: resource.resource).origin == server.url.origin)
        for issuer in resource.authorizationServers {
            try hold(issuer, namedBy: server.url)
            for request in (try? ProviderMetadata.discoveryRequests(issuer: issuer, order: .mcp)) ?? [] {
                let asked = try WebURL(parsing: request.url).origin
                try hold("an issuer's own host is asked", asked == (try WebURL(parsing: issuer)).origin)
            }
        }
    }
}

/// What an MCP client writes: how the bytes are cut changes nothing, no byte of a message does, and what the outline finds
/// is what a parser of the whole text finds.
enum MCPMessageLaw {
    static func check(_ bytes: [UInt8]) throws {
        var whole = JSONLines(limit: 4_096)
        let pieces = whole.append(bytes)
        var cut = JSONLines(limit: 4_096)
        try hold("how the bytes are cut changes nothing", bytes.flatMap { cut.append([$0]) } == pieces)
        try hold("the rest is the same", cut.finish() == whole.finish())
        for case .message(let line) in pieces {
            try hold("a line has no line feed", !line.contains(10))
            try look(line)
        }
        try look(bytes)
    }

    private static func look(_ bytes: [UInt8]) throws {
        guard let message = try? Message(parsing: bytes) else { return }
        try hold("no byte is changed", message.bytes == bytes)
        let line = JSONLines.line(of: bytes)
        try hold("a line ends once", line.last == 10 && line.count { $0 == 10 } == 1)
        guard let json = try? JSON(parsing: bytes) else { return }
        try hold("the method is the text's", json["method"]?.string == message.method)
        try hold("the outline of a line is the same", (try? JSON(parsing: line)) == json)
        let meta = json["params"]?["_meta"]?["io.modelcontextprotocol/protocolVersion"]?.string
        try hold("the version is the text's", message.statedVersion == (message.method == nil ? nil : meta))
        if let id = message.request {
            try hold("the id is the text's", (try? JSON(parsing: id.bytes)) == json["id"])
            let refused = try JSON(parsing: ErrorResponse.bytes(id, code: -32_000, message: "No."))
            try hold("an error has the request's id", refused["id"] == json["id"])
        }
        for text in [message.subject, message.statedVersion, message.method] {
            guard let text else { continue }
            let value = FieldRules.value(text)
            try hold("a value of a field is one line", value.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
        }
    }
}

/// What bridge and relay say to each other: how the bytes are cut changes nothing, what is read is written as the same,
/// and a request has only fields of the list.
enum MCPRelayLaw {
    static func check(_ bytes: [UInt8]) throws {
        if let request = RelayRequest(parsing: bytes) {
            try hold("what is written is read as the same", RelayRequest(parsing: request.line.dropLast()) == request)
            for field in request.fields {
                try hold("a field is of the list", FieldRules.isRequested(field.name))
                try hold("a value is one line", FieldRules.isValue(field.value))
            }
        }
        var whole = RelayReplyReader()
        guard let replies = whole.append(bytes) else { return }
        var cut = RelayReplyReader()
        var pieces: [RelayReply] = []
        for byte in bytes {
            guard let some = cut.append([byte]) else { throw LawBroken(law: "how the bytes are cut changes nothing") }
            pieces += some
        }
        try hold("how the bytes are cut changes nothing", MCPRelayLaw.joined(pieces) == MCPRelayLaw.joined(replies))
        var again = RelayReplyReader()
        try hold("what is written is read as the same", again.append(replies.flatMap(\.bytes)) == replies)
    }

    /// With pieces that follow each other as one.
    private static func joined(_ replies: [RelayReply]) -> [RelayReply] {
        var joined: [RelayReply] = []
        for reply in replies {
            if case .piece(let more) = reply, case .piece(let bytes)? = joined.last {
                joined[joined.count - 1] = .piece(bytes + more)
            } else {
                joined.append(reply)
            }
        }
        return joined
    }
}

extension RelayRequest {
    init?(parsing line: ArraySlice<UInt8>) { self.init(parsing: Array(line)) }
}

/// A list of tools, and calls of one with what is in the rest of the input: the fields that a bridge makes of them are ones
/// that the relay takes, and a call is sent as it is or not at all. The first line of an input is the server's response.
enum MCPToolsLaw {
    private static let meta = #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#

    static func check(_ bytes: [UInt8]) throws {
        let (list, arguments) = bytes.headLineAndRest
        var bridge = Bridge(account: "a") { _, _ in "ringback login a" }
        let asked = bridge.handle(
            .line(.message(Array(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{\#(meta)}}"#.utf8))),
            at: .zero)
        guard case .open(let number, _, _)? = asked.first else { throw LawBroken(law: "a list is asked for") }
        var head = RelayHead(status: 200)
        head.fields = [HTTPFields.Field("Content-Type", "application/json")]
        _ = bridge.handle(.reply(number, .head(head)), at: .zero)
        _ = bridge.handle(.reply(number, .piece(Array(list.utf8)[...])), at: .zero)
        _ = bridge.handle(.reply(number, .end), at: .zero)
        let call =
            Array(#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t",\#(meta),"arguments":"#.utf8)
            + arguments + Array("}}".utf8)
        for action in bridge.handle(.line(.message(call)), at: .zero) {
            guard case .open(_, let request, let body) = action else { continue }
            try hold("the relay takes the request", RelayRequest(parsing: request.line.dropLast()) == request)
            try hold("the message is sent as it is", body == call)
            let names = request.fields.map { $0.name.lowercased() }
            try hold("each field is there once", Set(names).count == names.count)
        }
    }
}

/// An exposed socket's filter. What is let through to the server parses to an allowed method and an allowed tool, whatever
/// the input, and is let through again as the same bytes. What is let through of the server has no token in it and names no
/// other tool in a list.
enum MCPRuleLaw {
    private static let tools = ["list_issues", "get_issue"]
    private static let rule = MessageRule(tools: tools)
    private static let token = "token-of-the-account"

    static func check(_ bytes: [UInt8]) throws {
        try lookAtRequest(bytes)
        try lookAtResponse(bytes)
        let ids = BoundIDs { "m\($0.utf8.count)" }
        let text = String(decoding: bytes, as: UTF8.self)
        if let id = ids.unbind(text, .session) {
            try hold("an id is bound as it was", ids.bind(id, .session).map { Array($0.utf8) == bytes } ?? false)
        }
        var response = RestrictedResponse(ResponseRule(rule, secrets: [token]), ids, request: nil)
        _ = response.head(status: 200, contentType: "text/event-stream", session: text, retryAfter: text)
        let output = response.take(bytes) ?? []
        try hold("a stream has no token", !String(decoding: output, as: UTF8.self).contains(token))
    }

    private static func lookAtRequest(_ bytes: [UInt8]) throws {
        guard let judged = try? rule.judge(bytes) else { return }
        let sent = judged.message.bytes
        let json = try JSON(parsing: sent, maxDepth: 64, maxValues: 200_000)
        try hold("it is one message", json.object != nil && json["jsonrpc"]?.string == "2.0")
        try hold("it is one line", !sent.contains(10) && !sent.contains(13))
        let names = json.object?.names ?? []
        try hold(
            "it has only members of MCP",
            names.allSatisfy(["jsonrpc", "id", "method", "params", "result", "error"].contains))
        if let method = json["method"] {
            let allowed = MessageRule.basic + MessageRule.standard
            try hold("its method is allowed", method.string.map { same($0, allowed) } ?? false)
            if method.string == "tools/call" {
                try hold("its tool is allowed", json["params"]?["name"]?.string.map { same($0, tools) } ?? false)
                let named = json["params"]?.object?.names.count { $0.lowercased() == "name" }
                try hold("it names one tool", named == 1)
            }
        }
        try hold("it is let through as the same", (try? rule.judge(sent))?.message.bytes == sent)
    }

    private static func lookAtResponse(_ bytes: [UInt8]) throws {
        guard case .message(let passed) = ResponseRule(rule, secrets: [token]).judge(bytes) else { return }
        try hold("it has no token", !String(decoding: passed, as: UTF8.self).contains(token))
        let json = try JSON(parsing: passed, maxDepth: 64, maxValues: 200_000)
        if let listed = json["result"]?["tools"] {
            let names = (listed.array ?? [.null]).map { $0["name"]?.string ?? "" }
            try hold("a list has only allowed tools", names.allSatisfy { same($0, tools) })
        }
    }

    private static func same(_ text: String, _ list: [String]) -> Bool {
        list.contains { $0.utf8.elementsEqual(text.utf8) }
    }
}
