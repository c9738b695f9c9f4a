import MCPBridge
import RingbackBase

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
