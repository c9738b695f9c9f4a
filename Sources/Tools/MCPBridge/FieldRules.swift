internal import Encodings
public import HTTPMessages

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

    /// True for the field of a tool's parameter.
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
        let edges: (UInt8?) -> Bool = { $0 == 0x20 }
        let isPlain =
            text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && !edges(text.utf8.first) && !edges(text.utf8.last)
            && !text.hasPrefix("=?base64?")
        return isPlain ? text : "=?base64?\(Base64.encode(text.utf8))?="
    }
}

/// Which redirects of an MCP server are followed.
public enum RedirectRule {
    /// True for a 307 or 308 to the same origin, whose path differs by the last slash alone.
    ///
    /// - Parameter location: the value of the field `Location`.
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

    private static func withoutSlash(_ path: String) -> Substring {
        path.hasSuffix("/") ? path.dropLast() : path[...]
    }
}
