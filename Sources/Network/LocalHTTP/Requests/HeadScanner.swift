/// Reads the bytes of a request's head, one grammar rule of RFC 9112 at a time. It stores only the position, so the
/// caller must pass the same bytes to every call.
struct HeadScanner {
    private var position = 0

    /// True if the next byte is CR, which can only begin the empty line that ends the head. `end(_:)` checks the rest.
    func isAtEmptyLine(_ bytes: Span<UInt8>) -> Bool { position < bytes.count && bytes[position] == 0x0D }

    /// Reads the empty line. Throws if bytes follow it.
    mutating func end(_ bytes: Span<UInt8>) throws(HeadError) {
        try lineEnd(bytes)
        guard position == bytes.count else { throw .malformed }
    }

    /// A token (RFC 9110 section 5.6.2) and the byte that ends it.
    mutating func token(_ bytes: Span<UInt8>, endingWith end: UInt8) throws(HeadError) -> String {
        let start = position
        while position < bytes.count, HeadScanner.isToken(bytes[position]) { position += 1 }
        guard position > start else { throw .malformed }
        try expect(bytes, end)
        return text(bytes, start, position - 1)
    }

    /// A request target and the space after it. An absolute form, which servers must accept (RFC 9112 section 3.2.2), is
    /// split into its authority and the origin form of the rest. The authority form and `*` are rejected: they are for
    /// proxies and for OPTIONS.
    mutating func target(_ bytes: Span<UInt8>) throws(HeadError) -> (text: String, authority: String?) {
        let authority = try authority(bytes)
        let start = position
        let hasPath = authority == nil || (position < bytes.count && bytes[position] == UInt8(ascii: "/"))
        if hasPath { try expect(bytes, UInt8(ascii: "/")) }
        while position < bytes.count, bytes[position] > 0x20, bytes[position] < 0x7F { position += 1 }
        try expect(bytes, 0x20)
        return ((hasPath ? "" : "/") + text(bytes, start, position - 1), authority)
    }

    /// The authority of a target in absolute form; nil for one that begins with a slash.
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

    /// A field's value without the whitespace around it, and the line's end. Folded lines and control characters are
    /// rejected.
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

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
