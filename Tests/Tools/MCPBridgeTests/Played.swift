import MCPBridge
import RingbackBase
import Terminal

/// A bridge between a client and a server that the test plays.
struct Played {
    var bridge = Bridge(account: "linear") { scopes, again in
        let scopes: ShownCommand = scopes.map { "--scopes=\($0)" } ?? ""
        return ShownCommand("ringback login linear \(scopes) \(again ? "--again" : "" as ShownCommand)")
    }
    var now = Duration.zero
    var written: [JSON] = []
    var notes: [String] = []
    /// The requests that the relay got, by number; those that were closed or have ended are gone.
    var open: [Int: (request: RelayRequest, body: JSON?)] = [:]
    var closed: [Int] = []
    var isOver = false

    var last: Int { open.keys.max() ?? 0 }
    func request(_ number: Int) -> RelayRequest? { open[number]?.request }
    func field(_ name: String, of number: Int) -> String? {
        open[number]?.request.fields.first { $0.name == name }?.value
    }

    mutating func tell(_ event: Bridge.Event) {
        for action in bridge.handle(event, at: now) {
            switch action {
            case .open(let number, let request, let body):
                open[number] = (request, body.isEmpty ? nil : try? JSON(parsing: body))
            case .close(let number):
                open[number] = nil
                closed.append(number)
            case .write(let bytes): written.append((try? JSON(parsing: bytes)) ?? .null)
            case .note(let text): notes.append(text)
            case .exit: isOver = true
            }
        }
    }

    @discardableResult
    mutating func client(_ text: String) -> Int {
        let before = Set(open.keys)
        tell(.line(.message(Array(text.utf8))))
        return Set(open.keys).subtracting(before).max() ?? 0
    }

    mutating func head(
        _ number: Int, _ status: Int = 200, _ type: String? = "application/json", _ fields: [String: String] = [:],
        token: String? = "aa"
    ) {
        tell(.reply(number, .sending))
        var head = RelayHead(status: status, fields: fields.map { .init($0.key, $0.value) })
        if let type { head.fields.append(.init("Content-Type", type)) }
        head.token = token
        tell(.reply(number, .head(head)))
    }

    mutating func respond(
        _ number: Int, _ status: Int = 200, _ body: String? = nil, _ fields: [String: String] = [:],
        type: String = "application/json"
    ) {
        head(number, status, body == nil ? nil : type, fields)
        if let body { tell(.reply(number, .piece(Array(body.utf8)[...]))) }
        open[number] = nil
        tell(.reply(number, .end))
    }

    mutating func event(_ number: Int, _ text: String) { tell(.reply(number, .piece(Array(text.utf8)[...]))) }

    mutating func lose(_ number: Int) {
        open[number] = nil
        tell(.broke(number))
    }

    /// Time passes until the bridge wants to know. False if it waits for nothing.
    @discardableResult
    mutating func wait() -> Bool {
        guard let deadline = bridge.deadline else { return false }
        now = max(now, deadline)
        tell(.time)
        return true
    }

    /// A session of an older revision, with its standing stream.
    static func session(_ id: String = "s1") -> Played {
        var played = Played()
        let first = played.client(
            #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#)
        played.respond(
            first, 200, #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
            ["Mcp-Session-Id": id])
        let second = played.client(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        played.respond(second, 202)
        played.written = []
        return played
    }

    static let list = #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
    static let call = #"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count"}}"#
    static let done = #"{"jsonrpc":"2.0","id":2,"result":{}}"#
}
