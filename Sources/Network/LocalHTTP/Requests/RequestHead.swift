import HTTPMessages

/// The head of an HTTP/1.1 request, parsed strictly by RFC 9112. Attack: if two parsers read a head differently,
/// requests can be smuggled. Takes bytes and returns a head or throws ``HeadError``; no I/O.
struct RequestHead: Sendable {
    /// The value of the `Expect` field (RFC 9110 section 10.1.1).
    enum Expectation { case none, toContinue, unknown }

    let method: String
    let target: String
    /// The target up to `?`, undecoded.
    let path: String
    /// The target after `?`, undecoded.
    let query: String?
    /// True for HTTP/1.1, false for HTTP/1.0.
    let isCurrent: Bool
    private(set) var fields = HTTPFields()
    /// The body's length in bytes.
    private(set) var contentLength = 0
    /// True if the connection stays open after the response: HTTP/1.1 without `Connection: close`.
    private(set) var keepsAlive: Bool
    private(set) var expectation = Expectation.none
    private(set) var hasTransferEncoding = false
    private(set) var hasUpgrade = false
    private var hasHost = false
    private var hasContentLength = false

    static let maxFields = 64

    /// Parses everything up to and including the empty line. Throws ``HeadError``.
    init(parsing bytes: Span<UInt8>) throws(HeadError) {
        var scanner = HeadScanner()
        method = try scanner.token(bytes, endingWith: 0x20)
        guard method.utf8.count <= 32 else { throw .malformed }
        let authority: String?
        (target, authority) = try scanner.target(bytes)
        (path, query) = ServerRequest.split(target)
        isCurrent = try scanner.version(bytes)
        keepsAlive = isCurrent
        var count = 0
        while !scanner.isAtEmptyLine(bytes) {
            count += 1
            guard count <= RequestHead.maxFields else { throw .tooManyFields }
            let name = try scanner.token(bytes, endingWith: UInt8(ascii: ":"))
            let value = try scanner.fieldValue(bytes)
            try note(name, value)
            fields.append(name, value)
        }
        try scanner.end(bytes)
        // RFC 9112 section 3.2: exactly one Host, which may be empty.
        guard hasHost || !isCurrent else { throw .malformed }
        // Section 3.2.2: the field is ignored if the target names the host.
        if let authority { fields.set("Host", authority) }
    }

    /// Reads the fields that affect how the message is handled.
    private mutating func note(_ name: String, _ value: String) throws(HeadError) {
        switch name.utf8.count {
        case 4 where HTTPFields.isSame(name, "Host"):
            guard !hasHost else { throw .malformed }
            hasHost = true
        case 6 where HTTPFields.isSame(name, "Expect"):
            expectation = HTTPFields.isSame(value, "100-continue") && expectation != .unknown ? .toContinue : .unknown
        case 7 where HTTPFields.isSame(name, "Upgrade"): hasUpgrade = true
        case 10 where HTTPFields.isSame(name, "Connection"):
            if RequestHead.isClose(value) { keepsAlive = false }
        case 14 where HTTPFields.isSame(name, "Content-Length"): try noteLength(value)
        case 17 where HTTPFields.isSame(name, "Transfer-Encoding"): hasTransferEncoding = true
        default: break
        }
    }

    /// Accepts digits only, and the field only once. Parsers differ in how they read `5, 5`, `+5` or a second line.
    private mutating func noteLength(_ value: String) throws(HeadError) {
        guard !hasContentLength, (1...18).contains(value.utf8.count),
            value.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let number = Int(value)
        else { throw .malformed }
        hasContentLength = true
        contentLength = number
    }

    /// True if the list has `close`.
    private static func isClose(_ value: String) -> Bool {
        if HTTPFields.isSame(value, "close") { return true }
        guard value.utf8.contains(UInt8(ascii: ",")) else { return false }
        return value.split(separator: ",").contains { option in
            HTTPFields.isSame(String(option.filter { $0 != " " && $0 != "\t" }), "close")
        }
    }
}

/// The HTTP status of the error response to a rejected head.
struct HeadError: Error, Equatable {
    let status: Int
    static let malformed = HeadError(status: 400)
    static let tooManyFields = HeadError(status: 431)
    static let version = HeadError(status: 505)
}
