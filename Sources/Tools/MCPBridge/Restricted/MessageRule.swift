internal import RingbackBase

// Attack: a message that the filter reads in one way and the server in another. A member that stands twice, a name in other
// letters that the server takes for the same one, an escape, a batch. So a message is parsed strictly, only members that
// MCP has may stand in it, texts are compared byte by byte, and what is sent is written anew from what was judged.

/// What an exposed socket lets through to the MCP server of its account.
public struct MessageRule: Sendable, Equatable {
    /// The tools that may be called and are listed; nil for all of them.
    public let tools: [String]?
    /// The methods that may be used beside ``basic``.
    public let methods: [String]

    /// - Parameter methods: nil for ``standard``.
    public init(tools: [String]?, methods: [String]? = nil) {
        self.tools = tools
        self.methods = methods ?? MessageRule.standard
    }

    /// A message that may be sent, and the tool that it calls.
    public typealias Judged = (message: Message, tool: String?)

    public struct Refusal: Error, Sendable, Equatable {
        public let sentence: String
        /// What was asked for, if it could be read. It came from outside.
        public let method: String?
        public let tool: String?
        /// False for what is no message at all.
        public var isDenial: Bool { method != nil }

        public init(_ sentence: String, method: String? = nil, tool: String? = nil) {
            self.sentence = sentence
            self.method = method
            self.tool = tool
        }
    }

    /// Bytes of a message in either direction: its values are held in memory.
    public static let limit = 4 << 20
    static let maxDepth = 64
    static let maxValues = 200_000
    static let maxName = 256

    /// What every session needs, whatever it is for.
    public static let basic = [
        "initialize", "server/discover", "ping", "notifications/initialized", "notifications/cancelled",
        "notifications/progress", "notifications/roots/list_changed",
    ]
    /// What is allowed where no methods are named.
    public static let standard = ["tools/list", "tools/call"]
    /// What may be named: the other requests of MCP that clients send.
    public static let known =
        standard + [
            "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
            "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
            "subscriptions/listen", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update",
        ]

    /// True for a name that a list of tools may have, and that may be called where there is no list.
    public static func isToolName(_ name: String) -> Bool {
        (1...maxName).contains(name.utf8.count)
            && name.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
                default: true
                }
            }
    }

    /// Decides on a message of the client.
    public func judge(_ bytes: [UInt8]) throws(Refusal) -> Judged {
        guard bytes.count <= MessageRule.limit else {
            throw Refusal("A message may have \(MessageRule.limit >> 20) MiB on an exposed socket.")
        }
        guard let json = MessageRule.parse(bytes) else { throw Refusal("The message is not strict JSON.") }
        if json.array != nil { throw Refusal("Batches of messages are refused: send each message by itself.") }
        guard let members = json.object?.members else { throw Refusal("The message is no JSON object.") }
        guard json["jsonrpc"]?.string.map({ MessageRule.isSame($0, "2.0") }) == true else {
            throw Refusal("The message is not one of JSON-RPC 2.0.")
        }
        if let id = json["id"], !MessageRule.isID(id) {
            throw Refusal("The id of a message is a text or a whole number of 64 bits.")
        }
        let tool = try json["method"] == nil ? MessageRule.checkResponse(json, members) : checkRequest(json, members)
        guard let message = try? Message(parsing: json.serialized()) else {
            throw Refusal("The message cannot be read.")
        }
        return (message, tool)
    }

    /// A response to a request of the server calls no tool.
    private static func checkResponse(_ json: JSON, _ members: [JSONObject.Member]) throws(Refusal) -> String? {
        guard members.allSatisfy({ isOneOf($0.name, ["jsonrpc", "id", "result", "error"]) }), json["id"] != nil,
            json["result"]?.object != nil && json["error"] == nil
                || json["error"]?.object != nil && json["result"] == nil
        else { throw Refusal("The message is neither a request, a notification nor a response.") }
        return nil
    }

    private func checkRequest(_ json: JSON, _ members: [JSONObject.Member]) throws(Refusal) -> String? {
        guard let method = json["method"]?.string else { throw Refusal("The method of a message is a text.") }
        guard MessageRule.isOneOf(method, MessageRule.basic + methods) else {
            throw Refusal("This exposed socket does not allow this method.", method: method)
        }
        guard members.allSatisfy({ MessageRule.isOneOf($0.name, ["jsonrpc", "id", "method", "params"]) }) else {
            throw Refusal("The message has a member that MCP does not have.", method: method)
        }
        guard method.hasPrefix("notifications/") == (json["id"] == nil) else {
            throw Refusal("A request has an id, and a notification has none.", method: method)
        }
        let params = json["params"]
        guard params == nil || params?.object != nil else {
            throw Refusal("The parameters of a message are an object.", method: method)
        }
        guard method == "tools/call" else { return nil }
        guard let tool = params?["name"]?.string else { throw Refusal("The name of a tool is a text.", method: method) }
        // Some parsers take “Name” for “name”, and the last of the two.
        guard (params?.object?.names ?? []).count(where: { $0.lowercased() == "name" }) == 1 else {
            throw Refusal("The message names a tool twice.", method: method, tool: tool)
        }
        guard MessageRule.isToolName(tool), allows(tool: tool) else {
            throw Refusal("This exposed socket does not allow this tool.", method: method, tool: tool)
        }
        return tool
    }

    /// True if the tool may be called and is listed.
    func allows(tool: String) -> Bool { tools.map { MessageRule.isOneOf(tool, $0) } ?? true }

    /// A text of one message; nil if it is not strict JSON, or has a number that cannot be written again.
    static func parse(_ bytes: [UInt8]) -> JSON? {
        guard bytes.count <= limit, let json = try? JSON(parsing: bytes, maxDepth: maxDepth, maxValues: maxValues),
            isFinite(json)
        else { return nil }
        return json
    }

    private static func isFinite(_ json: JSON) -> Bool {
        switch json {
        case .double(let value): value.isFinite
        case .array(let elements): elements.allSatisfy(isFinite)
        case .object(let object): object.members.allSatisfy { isFinite($0.value) }
        default: true
        }
    }

    static func isID(_ json: JSON) -> Bool {
        switch json {
        case .integer: true
        case .string(let text): text.utf8.count <= 1_024
        default: false
        }
    }

    /// Equal byte by byte. `==` takes the Kelvin sign for the letter K.
    static func isSame(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
    static func isOneOf(_ text: String, _ list: [String]) -> Bool { list.contains { isSame($0, text) } }
}

/// Ids of sessions and events, bound to one exposed socket: its programs get them with a mark in front that only its relay
/// can make, and an id without it is refused. So no program can use a session of another one.
public struct BoundIDs: Sendable {
    public enum Kind: String, Sendable { case session, event }

    private let mark: @Sendable (String) -> String

    /// - Parameter mark: a keyed digest as visible ASCII without a full stop, always of the same length.
    public init(mark: @escaping @Sendable (String) -> String) { self.mark = mark }

    /// The id as the socket's programs get it. Nil for one that cannot be sent back.
    public func bind(_ id: String, _ kind: Kind) -> String? {
        let bound = "\(mark("\(kind.rawValue) \(id)")).\(id)"
        return FieldRules.isSessionID(id) && FieldRules.isSessionID(bound) ? bound : nil
    }

    /// The id as the server gave it; nil for one that is not of this socket.
    public func unbind(_ bound: String, _ kind: Kind) -> String? {
        guard FieldRules.isSessionID(bound), let dot = bound.firstIndex(of: ".") else { return nil }
        let id = String(bound[bound.index(after: dot)...])
        let wanted = Array(mark("\(kind.rawValue) \(id)").utf8)
        let found = Array(bound[..<dot].utf8)
        guard !id.isEmpty, wanted.count == found.count else { return nil }
        // As long for the first wrong byte as for the last one.
        return zip(wanted, found).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 ? id : nil
    }
}
