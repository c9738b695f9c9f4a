package import RingbackAPI

/// Builds the request targets of the socket API. What comes from outside is escaped, or refused where the API has no
/// escapes, so that a name or a scope can never become another path or parameter.
///
/// It is made of bytes, and its parameters are added one by one. The first use of a generic function or of an array of
/// tuples makes Swift's runtime search for types, which takes longer than the whole request of `ringback token`.
package struct RequestTarget {
    private static let account = Array("account".utf8)
    private var bytes: [UInt8] = []
    private var hasQuery = false

    /// True for a name that an account can have.
    package static func isAccountName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= 64, isLowerOrDigit(first) else { return false }
        for byte in name.utf8 where !isLowerOrDigit(byte) && !"._-".utf8.contains(byte) { return false }
        return true
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
        var target = try RequestTarget(endpoint, values)
        for (name, value) in pairs { target.add(name, value) }
        return target.text
    }

    /// The target of an endpoint without a query: `values` take the place of its path's parameters, in order.
    ///
    /// - Throws: `account_not_found` for what no account can be called.
    package init(_ endpoint: Endpoint, _ values: [String] = []) throws(RingbackError) {
        var next = 0
        var name: [UInt8]?
        for byte in endpoint.path.utf8 {
            switch (byte, name) {
            case (UInt8(ascii: "{"), _): name = []
            case (UInt8(ascii: "}"), let ended?):
                let value = next < values.count ? values[next] : ""
                next += 1
                if ended == RequestTarget.account { try RequestTarget.checkAccount(value) }
                appendEscaped(value)
                name = nil
            case (_, nil): bytes.append(byte)
            case (_, _?): name?.append(byte)
            }
        }
    }

    /// Adds a parameter to the query; nothing without a value.
    package mutating func add(_ name: String, _ value: String?) {
        guard let value else { return }
        bytes.append(hasQuery ? UInt8(ascii: "&") : UInt8(ascii: "?"))
        hasQuery = true
        appendEscaped(name)
        bytes.append(UInt8(ascii: "="))
        appendEscaped(value)
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Appends the text with everything but the unreserved characters of RFC 3986 escaped.
    private mutating func appendEscaped(_ text: String) {
        let digits = "0123456789ABCDEF".utf8
        for byte in text.utf8 {
            if RequestTarget.isUnreserved(byte) {
                bytes.append(byte)
            } else {
                bytes.append(UInt8(ascii: "%"))
                for digit in [byte >> 4, byte & 15] {
                    bytes.append(digits[digits.index(digits.startIndex, offsetBy: Int(digit))])
                }
            }
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        isLowerOrDigit(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || "-._~".utf8.contains(byte)
    }

    private static func isLowerOrDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
