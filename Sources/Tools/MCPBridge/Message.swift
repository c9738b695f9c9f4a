public import RingbackBase
internal import Terminal

/// A JSON-RPC message and what a bridge has to know of it. Its bytes are passed on as they are.
public struct Message: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case request(MessageID)
        case notification
        case response(MessageID)
    }

    public let bytes: [UInt8]
    public let kind: Kind
    /// Of a request or a notification.
    public let method: String?
    /// The revision that a message of 2026-07-28 or later states for itself; nil for the older ones, whose sessions
    /// have one revision.
    public let statedVersion: String?
    /// The name of the tool, prompt or resource that a request is about.
    public let subject: String?
    /// The request that `notifications/cancelled` is about.
    public let cancelled: MessageID?
    private let result: Range<Int>?
    private let error: Range<Int>?
    private let stated: Range<Int>?
    private let params: Range<Int>?

    public enum Failure: Error, Sendable, Equatable {
        /// No JSON object, or one that names a member twice.
        case malformed
        /// An array of messages, which newer revisions do not have.
        case batch
    }

    private static let members = ["jsonrpc", "id", "method", "params", "result", "error"]
    private static let parameters = ["_meta", "name", "uri", "requestId"]
    private static let versionKey = "io.modelcontextprotocol/protocolVersion"

    /// - Parameter isFromServer: the parameters are not looked at, which only say something of a client's message.
    public init(parsing bytes: [UInt8], isFromServer: Bool = false) throws(Failure) {
        guard JSONOutline.firstByte(of: bytes) != UInt8(ascii: "[") else { throw .batch }
        guard let members = JSONOutline.members(Message.members, of: bytes),
            !isFromServer || ByteSearch.isASCII(bytes.span) || String(validating: bytes, as: UTF8.self) != nil
        else { throw .malformed }
        self.bytes = bytes
        var id: MessageID?
        if let range = members["id"] {
            id = MessageID(bytes[range])
            // An error may be about a request whose id could not be read.
            guard id != nil || members["method"] == nil else { throw .malformed }
        }
        result = members["result"]
        error = members["error"]
        stated = members["jsonrpc"]
        self.params = members["params"]
        guard let range = members["method"] else {
            guard members["result"] != nil || members["error"] != nil else { throw .malformed }
            kind = .response(id ?? .none)
            (method, statedVersion, subject, cancelled) = (nil, nil, nil, nil)
            return
        }
        guard let method = JSONOutline.text(range, of: bytes) else { throw .malformed }
        self.method = method
        kind = id.map { .request($0) } ?? .notification
        guard !isFromServer, let params = members["params"] else {
            (statedVersion, subject, cancelled) = (nil, nil, nil)
            return
        }
        let found = JSONOutline.members(Message.parameters, of: bytes, in: params) ?? .init()
        let key = Message.versionKey
        let version = found["_meta"].flatMap { JSONOutline.members([key], of: bytes, in: $0)?[key] }
        statedVersion = version.flatMap { JSONOutline.text($0, of: bytes) }
        subject = Message.subjectMember[method].flatMap { found[$0] }.flatMap { JSONOutline.text($0, of: bytes) }
        cancelled = method == "notifications/cancelled" ? found["requestId"].flatMap { MessageID(bytes[$0]) } : nil
    }

    /// The member of the parameters that `Mcp-Name` repeats, by method.
    private static let subjectMember = ["tools/call": "name", "prompts/get": "name", "resources/read": "uri"]

    public var request: MessageID? {
        if case .request(let id) = kind { id } else { nil }
    }

    /// True for a message of the revision 2026-07-28 or a later one.
    public var statesVersion: Bool { statedVersion != nil }

    /// True for the notification of an older revision that ends the handshake.
    var isConfirmation: Bool { kind == .notification && method == "notifications/initialized" && !statesVersion }

    /// True for a message as JSON-RPC 2.0 defines it. A client may wait for ever after another one.
    public var isConformant: Bool {
        guard let stated, bytes[stated].elementsEqual(Message.version) else { return false }
        switch kind {
        case .request, .notification: return params.map { [0x7B, 0x5B].contains(bytes[$0.lowerBound]) } ?? true
        case .response(let id):
            guard let error else { return result != nil && id != .none }
            return result == nil && JSONOutline.isError(error, of: bytes)
        }
    }

    private static let version = Array("\"2.0\"".utf8)

    var errorCode: Int? {
        guard let error, error.count <= JSONOutline.maxText else { return nil }
        return (try? JSON(parsing: bytes[error]))?["code"]?.integer
    }

    public var isError: Bool { error != nil }

    /// The revision that a response to `initialize` chose.
    public var negotiatedVersion: String? {
        result.flatMap { JSONOutline.members(["protocolVersion"], of: bytes, in: $0)?["protocolVersion"] }
            .flatMap { JSONOutline.text($0, of: bytes) }
    }

    /// This error as the response to another request. For errors of servers that could not read the request's id.
    public func error(for id: MessageID) -> [UInt8]? {
        error.map {
            Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8) + id.bytes + Array(",\"error\":".utf8) + bytes[$0] + [0x7D]
        }
    }

    /// True for a method that may be sent a second time, because it changes nothing at the server.
    public var isRepeatable: Bool {
        switch method {
        case "ping", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
            "prompts/get", "completion/complete", "server/discover", "initialize", "notifications/initialized":
            true
        default: false
        }
    }
}

/// The id of a request: the bytes as they were written.
public struct MessageID: Hashable, Sendable {
    public let bytes: [UInt8]
    /// Equal for two ways to write the same text.
    private let key: String

    /// The id of a response that belongs to no request.
    static let none = MessageID(key: "null")

    private init(key: String) {
        bytes = Array(key.utf8)
        self.key = key
    }

    /// Nil for what is no id: only texts and numbers are.
    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count <= JSONOutline.maxText, let json = try? JSON(parsing: bytes) else { return nil }
        switch json {
        case .string: key = json.text
        // A number of more digits than 64 bits have stays what it is.
        case .integer, .double: key = String(decoding: bytes, as: UTF8.self)
        default: return nil
        }
        self.bytes = Array(bytes)
    }

    public static func == (left: MessageID, right: MessageID) -> Bool { left.key == right.key }
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

/// An error response of the bridge itself.
public enum ErrorResponse {
    /// - Parameters:
    ///   - id: nil if the message could not be read.
    ///   - code: of JSON-RPC, or from -32000 to -32099.
    ///   - data: members for programs.
    public static func bytes(_ id: MessageID?, code: Int, message: String, data: JSONObject = [:]) -> [UInt8] {
        let error: JSONObject = ["code": code, "message": message, "data": data.members.isEmpty ? nil : data]
        return Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8) + (id ?? .none).bytes + Array(",\"error\":".utf8)
            + JSON.object(error).serialized() + [0x7D]
    }
}

/// What a server says of a failure, as one short line: in JSON of many forms, in a page, or as text.
enum ServerReason {
    private static let maxBytes = 65_536
    /// The most specific member first.
    private static let members = [
        "error_description", "detail", "message", "msg", "errorSummary", "description", "reason", "error", "title",
        "errors",
    ]

    /// Nil if the body says nothing.
    static func text(of body: [UInt8]) -> String? {
        let start = Array(body.prefix(maxBytes))
        let found: String? =
            if let json = try? JSON(parsing: start) {
                text(of: json, depth: 0)
            } else {
                plain(String(decoding: start, as: UTF8.self))
            }
        let words = (found ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let line = Sanitizer.line(words, limit: 300)
        return line.isEmpty ? nil : line
    }

    private static func text(of json: JSON, depth: Int) -> String? {
        if let text = json.string { return text.allSatisfy(\.isWhitespace) ? nil : text }
        guard depth < 4 else { return nil }
        if let list = json.array { return list.prefix(4).lazy.compactMap { text(of: $0, depth: depth + 1) }.first }
        return members.lazy.compactMap { name in json[name].flatMap { text(of: $0, depth: depth + 1) } }.first
    }

    /// The title of a page, or the text itself.
    private static func plain(_ text: String) -> String? {
        guard text.first(where: { !$0.isWhitespace }) == "<" else { return text }
        let lower = text.lowercased()
        // Lowercasing changes the length of a few letters; then there is no title.
        guard lower.utf8.count == text.utf8.count else { return nil }
        for name in ["title", "h1"] {
            guard let tag = lower.firstRange(of: "<\(name)"), let begin = lower[tag.upperBound...].firstIndex(of: ">"),
                let end = lower[begin...].firstRange(of: "</\(name)")
            else { continue }
            let inside = text.utf8.dropFirst(lower.utf8.distance(from: lower.startIndex, to: begin) + 1)
            return String(
                decoding: inside.prefix(lower.utf8.distance(from: begin, to: end.lowerBound) - 1), as: UTF8.self)
        }
        return nil
    }
}
