package import RingbackAPI

/// Builds the request targets of the socket API. What comes from outside is escaped, or refused where the API has no
/// escapes, so that a name or a scope can never become another path or parameter.
package enum RequestTarget {
    /// True for a name that an account can have.
    package static func isAccountName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard let first = bytes.first, bytes.count <= 64, isLowerOrDigit(first) else { return false }
        return bytes.allSatisfy { isLowerOrDigit($0) || "._-".utf8.contains($0) }
    }

    /// - Throws: `account_not_found` for what no account can be called.
    package static func checkAccount(_ name: String) throws(RingbackError) {
        guard isAccountName(name) else {
            throw RingbackError(
                .accountNotFound,
                "“\(name)” cannot be an account's name: small letters, digits, “.”, “_” and “-” can, at most 64.",
                recovery: .fixConfiguration)
        }
    }

    /// The target of an endpoint: `values` take the place of its path's parameters, in order.
    ///
    /// - Throws: `account_not_found` for what no account can be called.
    package static func of(
        _ endpoint: Endpoint, _ values: [String] = [], query pairs: [(String, String?)] = []
    ) throws(RingbackError) -> String {
        var path = ""
        var rest = values[...]
        for segment in endpoint.path.split(separator: "/") {
            path += "/"
            guard let name = Endpoint.parameter(segment) else {
                path += segment
                continue
            }
            let value = rest.popFirst() ?? ""
            if name == "account" { try checkAccount(value) }
            path += escape(value)
        }
        return query(path, pairs)
    }

    /// The path with those of the pairs that have a value.
    package static func query(_ path: String, _ pairs: [(String, String?)]) -> String {
        var text = path
        var separator = "?"
        for (name, value) in pairs {
            guard let value else { continue }
            append(name, value, to: &text, after: separator)
            separator = "&"
        }
        return text
    }

    private static func append(_ name: String, _ value: String, to text: inout String, after separator: String) {
        text += separator
        text += escape(name)
        text += "="
        text += escape(value)
    }

    /// Everything but the unreserved characters of RFC 3986 escaped.
    package static func escape(_ text: String) -> String {
        var output = ""
        for byte in text.utf8 {
            if isUnreserved(byte) {
                output.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                output += byte < 16 ? "%0" : "%"
                output += String(byte, radix: 16, uppercase: true)
            }
        }
        return output
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        isLowerOrDigit(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || "-._~".utf8.contains(byte)
    }

    private static func isLowerOrDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
