public import RingbackBase
internal import RingbackClient

/// One request to the MCP server, over all its attempts.
struct OutgoingRequest: Sendable {
    enum Purpose: Sendable {
        /// Of the client.
        case message(Message)
        /// The client's `initialize` again, after the server forgot the session.
        case replay(Message)
        /// The client's `notifications/initialized` again.
        case replayEnd(Message)
        /// The standing stream for what the server says by itself.
        case stream
        case end
    }

    var purpose: Purpose
    /// The session that the last attempt was sent in.
    var session: String?
    /// The SHA-256 of the token that the server refused.
    var rejected: String?
    /// The daemon asks the user to sign in, and this waits for it.
    var waitsForSignIn = false
    /// The request goes on after this event.
    var lastEventID: String?
    /// Attempts in a row that brought nothing.
    var failures = 0
    var wasRefused = false
    var wasRepeated = false
    var wasReplayed = false
    var isCancelled = false
    /// Messages that belong to the request have been passed on.
    var hasSpoken = false

    init(_ purpose: Purpose) { self.purpose = purpose }

    var message: Message? {
        switch purpose {
        case .message(let message), .replay(let message), .replayEnd(let message): message
        case .stream, .end: nil
        }
    }

    /// The client's request that waits for a response.
    var request: MessageID? {
        if case .message(let message) = purpose { message.request } else { nil }
    }

    var isReplay: Bool {
        if case .replay = purpose { true } else { false }
    }

    var isStream: Bool {
        if case .stream = purpose { true } else { false }
    }

    /// True if a 404 says that the session has ended: also of a stream that is connected again. To its first request servers
    /// without streams respond so.
    var mayFindSessionEnded: Bool { message != nil || isStream && failures > 0 }

    /// True for a message that begins a session of an older revision.
    var beginsSession: Bool { message?.method == "initialize" && message?.statesVersion == false }

    /// Of the next attempt.
    var httpMethod: String {
        switch purpose {
        case .end: "DELETE"
        case .stream: "GET"
        default: lastEventID == nil ? "POST" : "GET"
        }
    }
}

/// An attempt of a request: what has come back so far.
struct Attempt: Sendable {
    enum Body: Sendable {
        case none
        case json
        case events
        /// Of an HTTP error.
        case error(RelayHead)
    }

    var outgoing: OutgoingRequest
    var isSent = false
    var head: RelayHead?
    var kind = Body.none
    var body: [UInt8] = []
    var events = ServerSentEvents(limit: JSONLines.limit, endsWithLineFeed: true)
    /// The response has been passed on.
    var isAnswered = false
}

// Attack: a tool's name, an event's id or a client could add a field of its own choice to a request that carries the
// token, or change where it goes. So fields go by a list, and every value is one line of ASCII.

/// Which header fields go to an MCP server, and which come back.
public enum FieldRules {
    private static let requested: Set<String> = [
        "accept", "content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id",
    ]
    private static let returned: Set<String> = ["content-type", "mcp-session-id", "www-authenticate", "retry-after"]

    /// True for a field that a bridge may send to the server: never `Authorization`, `Host` or `Cookie`.
    public static func isRequested(_ name: String) -> Bool {
        let name = name.lowercased()
        return requested.contains(name) || isParameter(name)
    }

    private static func isParameter(_ name: String) -> Bool {
        let prefix = "mcp-param-"
        return name.hasPrefix(prefix) && (1...128).contains(name.utf8.count - prefix.utf8.count)
            && name.utf8.allSatisfy(HTTPFields.isTokenByte)
    }

    /// True for a field of the server's response that a bridge gets: never `Set-Cookie`.
    public static func isReturned(_ name: String) -> Bool { returned.contains(name.lowercased()) }

    /// True for a value that is one line of printable ASCII.
    public static func isValue(_ text: String) -> Bool {
        text.utf8.count <= 8_192 && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    /// True for a session id that may be sent back: visible ASCII (2025-11-25, Session Management).
    public static func isSessionID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 1_024 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// A text as the value of a field. What a field cannot carry as it is stands between `=?base64?` and `?=`
    /// (2026-07-28, Streamable HTTP).
    public static func value(_ text: String) -> String {
        let isPlain =
            text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && text.utf8.first != 0x20 && text.utf8.last != 0x20
            && !text.hasPrefix("=?base64?")
        return isPlain ? text : "=?base64?\(Base64.encode(text.utf8))?="
    }
}

public enum RedirectRule {
    /// True for a 307 or 308 to the same origin, whose path differs by the last slash alone.
    public static func allows(_ status: Int, from url: WebURL, to location: String) -> Bool {
        guard status == 307 || status == 308 else { return false }
        let text = location.hasPrefix("/") && !location.hasPrefix("//") ? url.origin + location : location
        guard let target = try? WebURL(parsing: text), target.origin == url.origin, target.fragment == nil,
            target.query == url.query
        else { return false }
        return target.path != url.path && withoutSlash(target.path) == withoutSlash(url.path)
    }

    /// The URL whose path has the last slash, if this one has none, or the other way round.
    public static func toggled(_ url: WebURL) -> WebURL? {
        let path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path + "/"
        return try? WebURL(parsing: url.origin + path + (url.query.map { "?\($0)" } ?? ""))
    }

    private static func withoutSlash(_ path: String) -> Substring { path.hasSuffix("/") ? path.dropLast() : path[...] }
}
