import MCPBridge
import RingbackBase

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
