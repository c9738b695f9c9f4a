/// A header field in which a tool sends a token, as the configuration writes it: `Authorization: Bearer {token}`.
public struct OriginHeader: Sendable, Hashable {
    /// Why a field is rejected.
    public enum Failure: Error, Equatable, Sendable {
        /// The text does not have the form `Name: value`.
        case notAField
        /// The field controls the connection or the message's framing, so it cannot carry a token.
        case reserved
        /// The value has an unknown word in braces.
        case unknownPlaceholder(String)
    }

    /// The field's name.
    public let name: String
    /// The value, with its placeholders.
    public let template: String

    /// The field that the tools of most services send.
    public static let usual = OriginHeader(name: "Authorization", template: "Bearer {token}")

    /// The words that may be in braces.
    private static let placeholders = ["token", "username", "api_key"]
    /// Fields that control the connection or the message's framing (RFC 9110, RFC 9112).
    private static let reserved: Set<String> = [
        "connection", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    private init(name: String, template: String) {
        self.name = name
        self.template = template
    }

    /// Reads a field.
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

    /// True if the value has this placeholder.
    public func uses(_ placeholder: String) -> Bool { template.contains("{\(placeholder)}") }

    /// The field with one placeholder replaced by a text.
    public func setting(_ placeholder: String, to value: String) -> OriginHeader {
        OriginHeader(name: name, template: template.replacing("{\(placeholder)}", with: value))
    }

    /// The field as a line of a request. The values must have been checked: a line break in one would add a field.
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

    /// The field as the configuration writes it.
    public var text: String { "\(name): \(template)" }
}
