internal import RingbackBase

// A message may have 16 MiB, and the bridge needs a few members of it. So the text is not parsed into values: its
// members are found by skipping what is between them. Whoever the message is for parses it.

/// Finds the members of a JSON object without reading their values.
struct JSONOutline {
    /// Levels of objects and arrays.
    static let maxDepth = 512
    /// Bytes of a member's name, or of a text that is read.
    static let maxText = 65_536

    private let bytes: [UInt8]
    private var place: Int
    private let end: Int

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        place = range.lowerBound
        end = range.upperBound
    }

    /// Where the values of the named members are. There are a few names, so they are compared one by one.
    struct Members {
        fileprivate var found: [(name: String, value: Range<Int>)] = []

        subscript(name: String) -> Range<Int>? { found.first { $0.name == name }?.value }
    }

    /// Where the values of the named members are; nil if the text is no object, or has one of the names twice, which
    /// two readers could read in two ways.
    static func members(_ names: [String], of bytes: [UInt8], in range: Range<Int>? = nil) -> Members? {
        var outline = JSONOutline(bytes, range ?? bytes.indices)
        return outline.members(names)
    }

    /// The first one that is no white space.
    static func firstByte(of bytes: [UInt8]) -> UInt8? { bytes.first { !isSpace($0) } }

    /// The text of a value; nil if it is none, or has more bytes than ``maxText``.
    static func text(_ range: Range<Int>, of bytes: [UInt8]) -> String? {
        guard range.count <= maxText else { return nil }
        if let inside = plainText(range, of: bytes) { return String(decoding: bytes[inside], as: UTF8.self) }
        return (try? JSON(parsing: bytes[range]))?.string
    }

    /// True for the error of a response: an object with an integer as code and a text as message.
    static func isError(_ range: Range<Int>, of bytes: [UInt8]) -> Bool {
        guard let members = members(["code", "message"], of: bytes, in: range), let code = members["code"],
            let message = members["message"], bytes[message.lowerBound] == UInt8(ascii: "\"")
        else { return false }
        return code.count <= 20 && (try? JSON(parsing: bytes[code]))?.integer != nil
    }

    /// Where the text stands if it is what it means: ASCII without escapes. Nil for every other value.
    private static func plainText(_ range: Range<Int>, of bytes: [UInt8]) -> Range<Int>? {
        guard range.count >= 2, bytes[range.lowerBound] == UInt8(ascii: "\""),
            bytes[range.upperBound - 1] == UInt8(ascii: "\"")
        else { return nil }
        let inside = (range.lowerBound + 1)..<(range.upperBound - 1)
        let span = bytes.span.extracting(inside)
        guard ByteSearch.textEnd(in: span, from: 0, to: span.count) == span.count, ByteSearch.isASCII(span) else {
            return nil
        }
        return inside
    }

    /// The one of the names that a member has. A name is only made into a text if it is not plain.
    private static func known(_ range: Range<Int>, of bytes: [UInt8], among names: [String]) -> String? {
        guard let inside = plainText(range, of: bytes) else {
            return text(range, of: bytes).flatMap { names.contains($0) ? $0 : nil }
        }
        return names.first { name in
            name.utf8.count == inside.count && (inside.isEmpty || name.utf8.first == bytes[inside.lowerBound])
                && bytes[inside].elementsEqual(name.utf8)
        }
    }

    private mutating func members(_ names: [String]) -> Members? {
        var members = Members()
        members.found.reserveCapacity(names.count)
        skipSpace()
        guard take(UInt8(ascii: "{")) else { return nil }
        skipSpace()
        if take(UInt8(ascii: "}")) { return isAtEnd ? members : nil }
        while true {
            skipSpace()
            let start = place
            guard skipString() else { return nil }
            let name = JSONOutline.known(start..<place, of: bytes, among: names)
            skipSpace()
            guard take(UInt8(ascii: ":")) else { return nil }
            skipSpace()
            let value = place
            guard skipValue() else { return nil }
            if let name {
                guard members[name] == nil else { return nil }
                members.found.append((name, value..<place))
            }
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            return take(UInt8(ascii: "}")) && isAtEnd ? members : nil
        }
    }

    private var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return place == end
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    private mutating func skipSpace() {
        while place < end, JSONOutline.isSpace(bytes[place]) { place += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard place < end, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    private mutating func skipString() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        var next = place
        while true {
            next = ByteSearch.textEnd(in: bytes.span, from: next, to: end)
            guard next < end else { return false }
            switch bytes[next] {
            case UInt8(ascii: "\""):
                place = next + 1
                return true
            case UInt8(ascii: "\\"):
                guard let count = escape(at: next) else { return false }
                next += count
            default: return false
            }
        }
    }

    /// Bytes of the escape that begins here; nil if it is none of JSON's.
    private func escape(at place: Int) -> Int? {
        guard place + 1 < end else { return nil }
        switch bytes[place + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return 2
        case UInt8(ascii: "u"):
            guard place + 5 < end else { return nil }
            return bytes[(place + 2)...(place + 5)].allSatisfy { $0.hexValue != nil } ? 6 : nil
        default: return nil
        }
    }

    private mutating func skipValue() -> Bool {
        guard place < end else { return false }
        switch bytes[place] {
        case UInt8(ascii: "\""): return skipString()
        case UInt8(ascii: "{"), UInt8(ascii: "["): return skipContainer()
        default: return skipWord()
        }
    }

    /// What is in it is checked too: what is passed on must be JSON.
    private mutating func skipContainer() -> Bool {
        var open = OpenContainers()
        repeat {
            skipSpace()
            guard place < end else { return false }
            let byte = bytes[place]
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard open.depth < JSONOutline.maxDepth else { return false }
                open.begin(byte)
                place += 1
                skipSpace()
                guard take(byte + 2) else {
                    guard byte == UInt8(ascii: "[") || skipName() else { return false }
                    continue
                }
                open.end()
            case UInt8(ascii: "\""): guard skipString() else { return false }
            default: guard skipWord() else { return false }
            }
            // A value has ended.
            while let bracket = open.closingBracket {
                skipSpace()
                if take(UInt8(ascii: ",")) {
                    guard bracket == UInt8(ascii: "]") || skipName() else { return false }
                    break
                }
                guard take(bracket) else { return false }
                open.end()
            }
        } while open.depth > 0
        return true
    }

    private mutating func skipName() -> Bool {
        skipSpace()
        guard skipString() else { return false }
        skipSpace()
        return take(UInt8(ascii: ":"))
    }

    private mutating func skipWord() -> Bool {
        let start = place
        var isCount = true
        while place < end {
            let byte = bytes[place]
            if JSONOutline.isSpace(byte) || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}")
                || byte == UInt8(ascii: "]")
            {
                break
            }
            isCount = isCount && (0x30...0x39).contains(byte)
            place += 1
        }
        // Most numbers need no parser.
        if isCount, (1...18).contains(place - start), bytes[start] != UInt8(ascii: "0") { return true }
        return place - start <= 400 && (try? JSON(parsing: bytes[start..<place])) != nil
    }
}

/// The objects and arrays that are open, as a bit for each level: set for an object, the innermost one last. 64 levels need
/// no memory.
private struct OpenContainers {
    private(set) var depth = 0
    private var kinds: UInt64 = 0
    private var outer: [UInt64] = []

    var closingBracket: UInt8? { depth == 0 ? nil : kinds & 1 == 1 ? UInt8(ascii: "}") : UInt8(ascii: "]") }

    mutating func begin(_ bracket: UInt8) {
        if depth > 0, depth % 64 == 0 { outer.append(kinds) }
        kinds = kinds << 1 | (bracket == UInt8(ascii: "{") ? 1 : 0)
        depth += 1
    }

    mutating func end() {
        depth -= 1
        kinds = depth > 0 && depth % 64 == 0 ? outer.removeLast() : kinds >> 1
    }
}
