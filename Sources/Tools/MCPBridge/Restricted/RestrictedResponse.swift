internal import RingbackBase
internal import RingbackClient

/// The response to a request of an exposed socket's program on its way back: bytes of the server in, bytes for the program
/// out. Each message is judged and written anew, in JSON and in streams alike.
public struct RestrictedResponse: Sendable {
    private enum Body: Sendable {
        case json([UInt8])
        case events(ServerSentEvents)
        /// Not passed on.
        case none
    }

    private let rule: ResponseRule
    private let ids: BoundIDs
    private let request: MessageID?
    private let listsTools: Bool
    private var body = Body.none
    private var isError = false
    private var lastID: String?
    private var retry: Int?
    private var withheld: [ResponseRule.Reason] = []
    private var lists: [[UInt8]] = []

    /// - Parameter listsTools: the request is `tools/list`.
    public init(_ rule: ResponseRule, _ ids: BoundIDs, request: MessageID?, listsTools: Bool = false) {
        self.rule = rule
        self.ids = ids
        self.request = request
        self.listsTools = listsTools
    }

    /// Bytes of the message that has begun and is not whole.
    public var held: Int {
        switch body {
        case .json(let held): held.count
        case .events(let events): events.held
        case .none: 0
        }
    }

    /// The head that is passed on. No field of the server is but these three.
    public mutating func head(status: Int, contentType: String?, session: String?, retryAfter: String?) -> RelayHead {
        var head = RelayHead(status: status)
        let type = (contentType ?? "").lowercased()
        isError = !(200..<300).contains(status)
        if type.hasPrefix("text/event-stream"), !isError {
            body = .events(ServerSentEvents(limit: MessageRule.limit))
            head.fields.append(.init("Content-Type", "text/event-stream"))
        } else if type.hasPrefix("application/json") {
            body = .json([])
            head.fields.append(.init("Content-Type", "application/json"))
        }
        if let session, rule.allows(text: session), let bound = ids.bind(session, .session) {
            head.fields.append(.init("Mcp-Session-Id", bound))
        }
        if let retryAfter, (1...6).contains(retryAfter.utf8.count),
            retryAfter.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        {
            head.fields.append(.init("Retry-After", retryAfter))
        }
        return head
    }

    /// Takes bytes of the body, and gives what is passed on. Nil if the server sends what has no end.
    public mutating func take(_ bytes: [UInt8]) -> [UInt8]? {
        switch body {
        case .none: return []
        case .json(var held):
            // The only reference, so that the bytes are not copied for each piece.
            body = .none
            // One byte more than can be read. The array does not grow to twice of that.
            let taken = bytes.prefix(MessageRule.limit + 1 - held.count)
            if held.count + taken.count > held.capacity {
                held.reserveCapacity(min(max(2 * held.count, held.count + taken.count), MessageRule.limit + 1))
            }
            held += taken
            body = .json(held)
            return []
        case .events(var events):
            body = .none
            guard let found = try? events.append(bytes) else { return nil }
            defer { body = .events(events) }
            var output = found.flatMap { event($0) }
            if events.retry != retry, let milliseconds = events.retry {
                retry = milliseconds
                output = Array("retry: \(milliseconds)\n".utf8) + output
            }
            if events.lastID != lastID { output += idLine(events.lastID) + [10] }
            return output
        }
    }

    /// Why messages were withheld since the last call.
    public mutating func takeWithheld() -> [ResponseRule.Reason] {
        defer { withheld = [] }
        return withheld
    }

    public mutating func takeLists() -> [[UInt8]] {
        defer { lists = [] }
        return lists
    }

    /// The response is given up, since no more of it can be held: gives what ends it.
    public mutating func giveUp() -> [UInt8] {
        withheld.append(.crowded)
        guard let request else { return [] }
        let error = ResponseRule.error(.crowded, for: request)
        return isJSON ? error : Array("data: ".utf8) + error + [10, 10]
    }

    public func allows(text: String) -> Bool { rule.allows(text: text) }

    /// The body is whole: gives what is passed on at its end.
    public mutating func finish() -> [UInt8] {
        guard case .json(let held) = body, !held.isEmpty else { return [] }
        return judged(held) ?? []
    }

    private mutating func event(_ event: ServerSentEvents.Event) -> [UInt8] {
        var output = idLine(event.id)
        if event.name != "message", rule.allows(text: event.name) { output += Array("event: \(event.name)\n".utf8) }
        if event.data.isEmpty { return output + Array("data:\n\n".utf8) }
        guard let message = judged(Array(event.data.utf8)) else { return output + [10] }
        return output + Array("data: ".utf8) + message + [10, 10]
    }

    private mutating func idLine(_ id: String?) -> [UInt8] {
        guard let id, id != lastID else { return [] }
        lastID = id
        guard rule.allows(text: id), let bound = ids.bind(id, .event) else { return Array("id:\n".utf8) }
        return Array("id: \(bound)\n".utf8)
    }

    private mutating func judged(_ bytes: [UInt8]) -> [UInt8]? {
        switch rule.judge(bytes) {
        case .message(let message):
            if listsTools { lists.append(message) }
            return message
        case .withheld(let reason, let id):
            // The body of an HTTP error is often no message.
            if isError, reason == .unreadable { return nil }
            withheld.append(reason)
            // In a stream another event may still be the response.
            guard let id = id ?? (isJSON ? request : nil) else { return nil }
            return ResponseRule.error(reason, for: id)
        }
    }

    private var isJSON: Bool { if case .json = body { true } else { false } }
}

// Attack: a server, or a tool of it, sends back what it was sent, and the token with it. What comes back is parsed and
// written anew, so that no escape hides a text; a message with the token in it is not passed on.

/// What an exposed socket lets through of a server's response.
public struct ResponseRule: Sendable {
    private let rule: MessageRule
    private let secrets: [TextHash]

    /// - Parameter secrets: what must not be passed on: the token, and what else the relay adds to a request. Shorter ones
    ///   than 8 bytes are left out: every text could have them.
    public init(_ rule: MessageRule, secrets: [String]) {
        self.rule = rule
        self.secrets = secrets.filter { $0.utf8.count >= ResponseRule.shortest }.map { secret in
            // As it is written in JSON, without the quotes.
            TextHash(JSON.string(secret).serialized().dropFirst().dropLast())
        }
    }

    private static let shortest = 8

    public enum Passed: Sendable, Equatable {
        case message([UInt8])
        case withheld(Reason, id: MessageID?)
    }

    public enum Reason: String, Sendable, Equatable {
        /// It is not strict JSON, or no object, or too long.
        case unreadable
        case secret
        /// The socket's relay holds too much of other responses.
        case crowded
    }

    /// Decides on a message of the server. Tools that are not allowed are not in the list that is passed on.
    public func judge(_ bytes: [UInt8]) -> Passed {
        guard case .object(var object)? = MessageRule.parse(bytes) else { return .withheld(.unreadable, id: nil) }
        let written = object["id"].map { $0.serialized() } ?? []
        // An error that repeats an id repeats no secret.
        let id = object["id"].map(MessageRule.isID) == true && !hasSecret(written) ? MessageID(written[...]) : nil
        // No other result of MCP has this member, so it is a list of tools, whatever it is the response to.
        if rule.tools != nil, var result = object["result"]?.object, let tools = result["tools"] {
            guard let list = tools.array else { return .withheld(.unreadable, id: id) }
            result["tools"] = .array(list.filter { $0["name"]?.string.map { rule.allows(tool: $0) } ?? false })
            object["result"] = .object(result)
        }
        let message = JSON.object(object).serialized()
        return hasSecret(message) ? .withheld(.secret, id: id) : .message(message)
    }

    /// A message that is passed on in place of the response that is withheld.
    public static func error(_ reason: Reason, for id: MessageID) -> [UInt8] {
        let sentence =
            switch reason {
            case .unreadable: "The MCP server's response is not strict JSON, or too long for an exposed socket."
            case .secret: "The MCP server's response has the access token in it, so it is not passed on."
            case .crowded: "This exposed socket has too many large responses at a time. Try again later."
            }
        return ErrorResponse.bytes(id, code: -32_000, message: sentence, data: ["code": "response_withheld"])
    }

    /// True for a text that may be passed on: a value of a field, or a part of an event.
    public func allows(text: String) -> Bool {
        FieldRules.isValue(text) && !hasSecret(Array(JSON.string(text).serialized()))
    }

    private func hasSecret(_ bytes: [UInt8]) -> Bool { secrets.contains { $0.isFound(in: bytes) } }
}
