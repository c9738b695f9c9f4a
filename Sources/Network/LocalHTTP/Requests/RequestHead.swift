internal import Glibc
internal import RingbackBase

/// The head of an HTTP/1.1 request, parsed strictly by RFC 9112. Attack: if two parsers read a head differently,
/// requests can be smuggled.
struct RequestHead: Sendable {
    /// RFC 9110 section 10.1.1.
    enum Expectation { case none, toContinue, unknown }

    let method: String
    let target: String
    /// Undecoded.
    let path: String
    let query: String?
    /// False for HTTP/1.0.
    let isCurrent: Bool
    private(set) var fields = HTTPFields()
    /// In bytes.
    private(set) var contentLength = 0
    /// HTTP/1.1 without `Connection: close`.
    private(set) var keepsAlive: Bool
    private(set) var expectation = Expectation.none
    private(set) var hasTransferEncoding = false
    private(set) var hasUpgrade = false
    private var hasHost = false
    private var hasContentLength = false
    static let maxFields = 64

    /// Everything up to and including the empty line. Throws ``HeadError``.
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

    /// The fields that affect how the message is handled.
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

    /// Digits only, once. Parsers differ in how they read `5, 5`, `+5` or a second line.
    private mutating func noteLength(_ value: String) throws(HeadError) {
        guard !hasContentLength, (1...18).contains(value.utf8.count),
            value.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let number = Int(value)
        else { throw .malformed }
        hasContentLength = true
        contentLength = number
    }

    private static func isClose(_ value: String) -> Bool {
        if HTTPFields.isSame(value, "close") { return true }
        guard value.utf8.contains(UInt8(ascii: ",")) else { return false }
        return value.split(separator: ",").contains { option in
            HTTPFields.isSame(String(option.filter { $0 != " " && $0 != "\t" }), "close")
        }
    }
}

/// The status of the error response to a rejected head.
struct HeadError: Error, Equatable {
    let status: Int
    static let malformed = HeadError(status: 400)
    static let tooManyFields = HeadError(status: 431)
    static let version = HeadError(status: 505)
}

/// Reads one grammar rule of RFC 9112 at a time. It stores only the position: every call must get the same bytes.
struct HeadScanner {
    private var position = 0

    /// A CR can only begin the empty line that ends the head. `end(_:)` checks the rest.
    func isAtEmptyLine(_ bytes: Span<UInt8>) -> Bool { position < bytes.count && bytes[position] == 0x0D }

    /// Throws if bytes follow the empty line.
    mutating func end(_ bytes: Span<UInt8>) throws(HeadError) {
        try lineEnd(bytes)
        guard position == bytes.count else { throw .malformed }
    }

    /// A token (RFC 9110 section 5.6.2) and the byte that ends it.
    mutating func token(_ bytes: Span<UInt8>, endingWith end: UInt8) throws(HeadError) -> String {
        let start = position
        while position < bytes.count, HTTPFields.isTokenByte(bytes[position]) { position += 1 }
        guard position > start else { throw .malformed }
        try expect(bytes, end)
        return text(bytes, start, position - 1)
    }

    /// A request target and the space after it. An absolute form, which servers must accept (RFC 9112 section 3.2.2),
    /// is split into its authority and the origin form of the rest. The authority form and `*` are rejected.
    mutating func target(_ bytes: Span<UInt8>) throws(HeadError) -> (text: String, authority: String?) {
        let authority = try authority(bytes)
        let start = position
        let hasPath = authority == nil || (position < bytes.count && bytes[position] == UInt8(ascii: "/"))
        if hasPath { try expect(bytes, UInt8(ascii: "/")) }
        while position < bytes.count, bytes[position] > 0x20, bytes[position] < 0x7F { position += 1 }
        try expect(bytes, 0x20)
        return ((hasPath ? "" : "/") + text(bytes, start, position - 1), authority)
    }

    /// Of a target in absolute form; nil for one that begins with a slash.
    private mutating func authority(_ bytes: Span<UInt8>) throws(HeadError) -> String? {
        guard position < bytes.count, bytes[position] != UInt8(ascii: "/") else { return nil }
        for byte in "http".utf8 {
            guard position < bytes.count, bytes[position] | 0x20 == byte else { throw .malformed }
            position += 1
        }
        for byte in "://".utf8 { try expect(bytes, byte) }
        let start = position
        while position < bytes.count, bytes[position] > 0x20, bytes[position] < 0x7F,
            !"/?@#\\".utf8.contains(bytes[position])
        {
            position += 1
        }
        guard position > start, position < bytes.count, "/? ".utf8.contains(bytes[position]) else { throw .malformed }
        return text(bytes, start, position)
    }

    /// `HTTP/1.1` or `HTTP/1.0` and the line's end; true for 1.1.
    mutating func version(_ bytes: Span<UInt8>) throws(HeadError) -> Bool {
        for byte in "HTTP/".utf8 { try expect(bytes, byte) }
        let major = try digit(bytes)
        try expect(bytes, UInt8(ascii: "."))
        let minor = try digit(bytes)
        try lineEnd(bytes)
        guard major == 1, minor <= 1 else { throw .version }
        return minor == 1
    }

    /// Without the whitespace around it, and the line's end. Folded lines and control characters are rejected.
    mutating func fieldValue(_ bytes: Span<UInt8>) throws(HeadError) -> String {
        while position < bytes.count, HeadScanner.isSpace(bytes[position]) { position += 1 }
        let start = position
        while position < bytes.count, bytes[position] >= 0x20 || bytes[position] == 0x09, bytes[position] != 0x7F {
            position += 1
        }
        var end = position
        while end > start, HeadScanner.isSpace(bytes[end - 1]) { end -= 1 }
        try lineEnd(bytes)
        // A next line that begins with a space would be an obsolete fold (RFC 9112 section 5.2).
        if position < bytes.count, HeadScanner.isSpace(bytes[position]) { throw .malformed }
        return text(bytes, start, end)
    }

    private mutating func lineEnd(_ bytes: Span<UInt8>) throws(HeadError) {
        try expect(bytes, 0x0D)
        try expect(bytes, 0x0A)
    }

    private mutating func expect(_ bytes: Span<UInt8>, _ byte: UInt8) throws(HeadError) {
        guard position < bytes.count, bytes[position] == byte else { throw .malformed }
        position += 1
    }

    private mutating func digit(_ bytes: Span<UInt8>) throws(HeadError) -> UInt8 {
        guard position < bytes.count, bytes[position] >= UInt8(ascii: "0"), bytes[position] <= UInt8(ascii: "9")
        else { throw .malformed }
        position += 1
        return bytes[position - 1] - UInt8(ascii: "0")
    }

    private func text(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> String {
        unsafe bytes.extracting(start..<end).withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// The last few request heads to which the immediate handler responded. A program that requests the same token again
/// sends the same bytes: the head is then not parsed again, and no memory is allocated. Only a head that cannot contain
/// a secret is kept: GET without a query or a body, and only with the fields below.
final class HeadCache {
    private struct Entry {
        let bytes: [UInt8]
        let head: RequestHead
    }

    /// About as many as a machine has accounts in constant use. A search compares the bytes with each entry.
    private static let most = 16
    private static let longest = 512
    private static let harmless = ["Host", "Connection", "Accept", "Accept-Encoding", "User-Agent"]

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var entries: [Entry] = []
    /// The index of the entry that is replaced next.
    private var turn = 0
    /// The last head that was parsed, if it may be kept.
    private var candidate: [UInt8] = []
    private var candidateHead: RequestHead?

    init() {
        candidate.reserveCapacity(HeadCache.longest)
    }

    /// The kept head with which the bytes begin.
    func find(_ bytes: Span<UInt8>) -> (head: RequestHead, length: Int)? {
        candidateHead = nil
        for index in entries.indices where HeadCache.begin(bytes, with: entries[index].bytes) {
            return (entries[index].head, entries[index].bytes.count)
        }
        return nil
    }

    /// A head ends at its first empty line, so such bytes cannot begin with another head.
    private static func begin(_ bytes: Span<UInt8>, with head: [UInt8]) -> Bool {
        guard bytes.count >= head.count else { return false }
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe head.withUnsafeBytes { head in
                guard let left = bytes.baseAddress, let right = head.baseAddress else { return false }
                return unsafe memcmp(left, right, head.count) == 0
            }
        }
    }

    func propose(_ head: RequestHead, _ bytes: Span<UInt8>) {
        candidateHead = nil
        guard head.method == "GET", head.query == nil, head.contentLength == 0, bytes.count <= HeadCache.longest,
            head.fields.lines.allSatisfy({ field in HeadCache.harmless.contains { HTTPFields.isSame($0, field.name) } })
        else { return }
        candidate.removeAll(keepingCapacity: true)
        for index in 0..<bytes.count { candidate.append(bytes[index]) }
        candidateHead = head
    }

    /// The immediate handler did not respond to the head that was proposed last.
    func forget() { candidateHead = nil }

    /// Keeps the head that was proposed last, unless the last ``find(_:)`` found one.
    func keep() {
        guard let head = candidateHead else { return }
        candidateHead = nil
        // Copied, because the candidate's memory is used again.
        let entry = Entry(bytes: candidate.map { $0 }, head: head)
        if entries.count < HeadCache.most {
            entries.append(entry)
        } else {
            entries[turn] = entry
            turn = (turn + 1) % HeadCache.most
        }
    }
}
