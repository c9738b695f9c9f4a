import HTTPMessages

/// The head of an HTTP/1.1 request as RFC 9112 writes it and no other way: two parties that read a head differently
/// are how requests are smuggled. Pure: bytes in, a head or a refusal out.
struct RequestHead: Sendable {
    /// What `Expect` says (RFC 9110 section 10.1.1).
    enum Expectation { case none, toContinue, unknown }

    let method: String
    let target: String
    /// HTTP/1.1, not 1.0.
    let isCurrent: Bool
    private(set) var fields = HTTPFields()
    /// Bytes of body to follow.
    private(set) var contentLength = 0
    /// The client wants the connection kept open.
    private(set) var keepsAlive: Bool
    private(set) var expectation = Expectation.none
    private(set) var hasTransferEncoding = false
    private(set) var hasUpgrade = false
    private var hasHost = false
    private var hasContentLength = false

    static let maxFields = 64

    /// Parses everything up to and including the empty line.
    init(parsing bytes: Span<UInt8>) throws(HeadRefusal) {
        var scanner = HeadScanner()
        method = try scanner.token(bytes, endingWith: 0x20)
        guard method.utf8.count <= 32 else { throw .malformed }
        target = try scanner.target(bytes)
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
    }

    /// Takes what a field says about the message itself.
    private mutating func note(_ name: String, _ value: String) throws(HeadRefusal) {
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

    /// Digits and nothing else, once: `5, 5`, `+5` and a second line are each read otherwise by somebody.
    private mutating func noteLength(_ value: String) throws(HeadRefusal) {
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

/// The HTTP status that refuses a head.
struct HeadRefusal: Error, Equatable {
    let status: Int
    static let malformed = HeadRefusal(status: 400)
    static let tooManyFields = HeadRefusal(status: 431)
    static let version = HeadRefusal(status: 505)
}
