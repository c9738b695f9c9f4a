import MCPBridge
import RingbackBase
import Terminal

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
        head.fields = [RelayRequest.Field("Content-Type", "application/json")]
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
