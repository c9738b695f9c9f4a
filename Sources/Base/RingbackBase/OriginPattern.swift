/// Where a token may be sent: a scheme, a host and a port, all exact, and optionally the first segments of a path.
/// Written as a URL that may end with `/*`: `https://gitlab.example.org/team/*`.
public struct OriginPattern: Sendable, Hashable {
    public enum Failure: Error, Equatable, Sendable {
        case notAURL
        case noHost
        /// Not encrypted, and the host is not this machine.
        case plainText
        case wildcard
        /// The URL has a query, a fragment or a user name.
        case notAnOrigin
        /// The path has segments that servers interpret in different ways.
        case ambiguousPath
    }

    /// Lower-cased.
    public let scheme: String
    /// Lower-cased, an IPv6 address without its brackets.
    public let host: String
    /// Nil for the default port of the scheme.
    public let port: Int?
    /// Normalized; empty for the whole origin.
    public let segments: [String]

    public init(parsing text: String) throws(Failure) {
        let place: OriginPlace
        do throws(WebURL.Failure) {
            place = OriginPlace(try WebURL(parsing: text))
        } catch {
            throw error == .userInformation ? .notAnOrigin : .notAURL
        }
        guard let host = place.host else { throw .noHost }
        guard !host.contains("*") else { throw .wildcard }
        guard host.utf8.allSatisfy(OriginPattern.isHostByte), !host.hasSuffix("."), !host.hasPrefix(".") else {
            throw .notAURL
        }
        guard place.isSecure else { throw .plainText }
        guard !place.hasQueryOrFragment else { throw .notAnOrigin }
        guard var segments = place.segments else { throw .ambiguousPath }
        if segments.last == "*" || segments.last == "" { segments.removeLast() }
        guard !segments.contains("") else { throw .ambiguousPath }
        guard !segments.contains(where: { $0.contains("*") }) else { throw .wildcard }
        scheme = place.scheme
        self.host = host
        port = place.port
        self.segments = segments
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte.isDigit || (0x61...0x7A).contains(byte) || ".-_:".utf8.contains(byte)
    }

    /// Canonical, with `/*` at its end.
    public var text: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let port = port.map { ":\($0)" } ?? ""
        return "\(scheme)://\(name)\(port)" + segments.map { "/\($0)" }.joined() + "/*"
    }

    /// For messages, with the port if it is not the scheme's default.
    public var place: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port.map { "\(name):\($0)" } ?? name
    }

    public func matches(_ place: OriginPlace) -> Bool {
        guard place.isSecure, place.scheme == scheme, place.host == host, place.port == port else { return false }
        guard !segments.isEmpty else { return true }
        return place.segments?.starts(with: segments) ?? false
    }
}

/// The part of an entry of the origin table that decides whether a lookup finds it.
public struct OriginRule: Sendable, Hashable {
    public let pattern: OriginPattern
    /// If this is not nil, only a tool that names this user gets the token.
    public let username: String?

    public init(_ pattern: OriginPattern, username: String? = nil) {
        self.pattern = pattern
        self.username = username
    }

    public func matches(_ place: OriginPlace, username: String?) -> Bool {
        (self.username == nil || self.username == username) && pattern.matches(place)
    }

    /// The matching rule with the longest path; of two with the same path that with a user name.
    public static func mostSpecific(of rules: [OriginRule], for place: OriginPlace, username: String?) -> Int? {
        rules.indices.filter { rules[$0].matches(place, username: username) }.max { left, right in
            rank(of: rules[left]) < rank(of: rules[right])
        }
    }

    private static func rank(of rule: OriginRule) -> (Int, Int) {
        (rule.pattern.segments.count, rule.username == nil ? 0 : 1)
    }
}

/// A header field in which a tool sends a token, as the configuration writes it: `Authorization: Bearer {token}`.
public struct OriginHeader: Sendable, Hashable {
    public enum Failure: Error, Equatable, Sendable {
        /// The text does not have the form `Name: value`.
        case notAField
        /// The field controls the connection or the message's framing, so it cannot carry a token.
        case reserved
        /// The value has an unknown word in braces.
        case unknownPlaceholder(String)
    }

    public let name: String
    /// With its placeholders.
    public let template: String
    /// That of most services' tools.
    public static let usual = OriginHeader(name: "Authorization", template: "Bearer {token}")
    private static let placeholders = ["token", "username", "api_key"]
    /// They control the connection or the message's framing (RFC 9110, RFC 9112).
    private static let reserved: Set<String> = [
        "connection", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    private init(name: String, template: String) {
        self.name = name
        self.template = template
    }

    public init(parsing text: String) throws(Failure) {
        guard let colon = text.firstIndex(of: ":"), text.utf8.count <= 1_024 else { throw .notAField }
        let name = String(text[..<colon])
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        guard !name.isEmpty, name.utf8.allSatisfy(HTTPFields.isTokenByte), !value.isEmpty, !value.hasSuffix(" "),
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
        else { throw .notAField }
        let lowered = name.lowercased()
        guard !OriginHeader.reserved.contains(lowered), !lowered.hasPrefix("content-") else { throw .reserved }
        var rest = value
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            guard let close = rest[open...].firstIndex(of: "}"), close > open else { throw .unknownPlaceholder("") }
            let word = String(rest[rest.index(after: open)..<close])
            guard OriginHeader.placeholders.contains(word) else { throw .unknownPlaceholder(word) }
            rest = rest[rest.index(after: close)...]
        }
        self.init(name: name, template: String(value))
    }

    /// The field for a token that is bound to a key (RFC 9449 section 7.1): ``usual``, in whatever letter case, with
    /// another scheme.
    public var ofBoundToken: OriginHeader {
        text.lowercased() == OriginHeader.usual.text.lowercased()
            ? OriginHeader(name: name, template: "DPoP {token}") : self
    }

    public func uses(_ placeholder: String) -> Bool { template.contains("{\(placeholder)}") }

    public func setting(_ placeholder: String, to value: String) -> OriginHeader {
        OriginHeader(name: name, template: template.replacing("{\(placeholder)}", with: value))
    }

    /// A line of a request. The values must have been checked: a line break in one would add a field.
    public func line(token: String, username: String?) -> String {
        var value = ""
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            value += rest[..<open]
            switch rest[rest.index(after: open)..<close] {
            case "token": value += token
            case "username": value += username ?? ""
            default: value += rest[open...close]
            }
            rest = rest[rest.index(after: close)...]
        }
        return "\(name): \(value)\(rest)"
    }

    /// As the configuration writes it.
    public var text: String { "\(name): \(template)" }
}
