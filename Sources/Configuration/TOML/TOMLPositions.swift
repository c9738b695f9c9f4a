/// Finds the line of every key in a TOML text: the parser keeps no positions.
///
/// It knows just enough of the grammar (tables, dotted and quoted keys, the four kinds of strings, arrays, inline tables)
/// not to take the inside of a value for a key. It judges nothing but the mistakes over which the parser would end the
/// program, and looks no further behind one. What the parser refuses in its own words may have any positions.
struct TOMLPositions {
    /// A key's names from the root; an element of an array is ``element(_:)``.
    typealias Path = [String]

    /// What the parser must not see.
    struct Refusal: Equatable {
        /// Of the byte that is too much.
        let offset: Int
        let line: Int
        let message: String
    }

    /// More names in one key are not meant, and many thousands would need all the memory there is.
    private static let maxNames = 16
    /// Arrays and inline tables inside each other.
    private static let maxDepth = 64

    /// From 1, by path; not of paths that are longer than any of ours.
    private(set) var lines: [Path: Int] = [:]
    /// Lines with a string or key that holds an escaped NUL: C strings end there, so nobody may trust the rest.
    private(set) var nulLines: [Int] = []
    /// The first mistake that is fatal to the parser.
    private(set) var refusal: Refusal?
    private var depth = 0
    /// How many elements each array of tables has so far.
    private var elements: [Path: Int] = [:]

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    /// The name that stands for an array's element in a path. No key can be spelled so.
    static func element(_ index: Int) -> String { "\0\(index)" }

    init(scanning bytes: [UInt8]) {
        self.bytes = bytes
        var prefix: Path = []
        while let byte = current {
            switch byte {
            case UInt8(ascii: "#"): skipComment()
            case UInt8(ascii: "["): prefix = scanHeader()
            case 0x20, 0x09, 0x0A, 0x0D: advance()
            default: scanPair(below: prefix)
            }
        }
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func advance() {
        guard position < bytes.count else { return }
        if bytes[position] == 0x0A { line += 1 }
        position += 1
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        advance()
        return true
    }

    private mutating func skipComment() {
        while let byte = current, byte != 0x0A { advance() }
    }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x09 { advance() }
    }

    /// Between the elements of an array: newlines and comments too.
    private mutating func skipSpace() {
        while let byte = current {
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: advance()
            case UInt8(ascii: "#"): skipComment()
            default: return
            }
        }
    }

    /// `[a.b]` or `[[a.b]]`: the path that the pairs below it have.
    private mutating func scanHeader() -> Path {
        advance()
        let isElement = take(UInt8(ascii: "["))
        let start = line
        skipBlanks()
        if let byte = current, !isKeyStart(byte), byte != UInt8(ascii: "]"), isElement || byte != UInt8(ascii: "[") {
            refuse("a table's name is missing, or has a character that needs quotation marks")
        }
        let names = scanKey()
        var path = Path()
        for (index, name) in names.enumerated() {
            path.append(name)
            note(path, start)
            if isElement, index == names.count - 1 { elements[path, default: 0] += 1 }
            // Below an array of tables, its last element is meant.
            guard let count = elements[path] else { continue }
            path.append(Self.element(count - 1))
            note(path, start)
        }
        while let byte = current, byte == UInt8(ascii: "]") || byte == 0x20 || byte == 0x09 { advance() }
        return path
    }

    private mutating func note(_ path: Path, _ line: Int) {
        if path.count <= Self.maxNames, lines[path] == nil { lines[path] = line }
    }

    /// Ends the scan.
    private mutating func refuse(_ message: String) {
        if refusal == nil { refusal = Refusal(offset: position, line: line, message: message) }
        position = bytes.count
    }

    /// `key = value`, in a table or an inline table.
    private mutating func scanPair(below prefix: Path) {
        let start = line
        let before = position
        var path = prefix
        for name in scanKey() {
            path.append(name)
            note(path, start)
        }
        skipBlanks()
        if take(UInt8(ascii: "=")) {
            skipBlanks()
            scanValue(path)
        }
        // Whatever this is, go on.
        if position == before { advance() }
    }

    /// The names of a dotted key.
    private mutating func scanKey() -> [String] {
        var names: [String] = []
        repeat {
            skipBlanks()
            switch current {
            case UInt8(ascii: "\""): names.append(scanBasicString(isLong: false))
            case UInt8(ascii: "'"): names.append(scanLiteralString(isLong: false))
            default:
                let start = position
                while let byte = current, isBare(byte) { advance() }
                guard position > start else { return names }
                names.append(String(decoding: bytes[start..<position], as: UTF8.self))
            }
            skipBlanks()
            if names.count > Self.maxNames { refuse("a key of more than \(Self.maxNames) names") }
        } while take(UInt8(ascii: "."))
        return names
    }

    /// A letter, a digit, `_`, `-` or a quotation mark.
    private func isKeyStart(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "_-\"'".utf8.contains(byte)
        }
    }

    private func isBare(_ byte: UInt8) -> Bool {
        !" \t\r\n.=[]{}\"',#".utf8.contains(byte)
    }

    private mutating func scanValue(_ path: Path) {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maxDepth else { return refuse("values are nested more than \(Self.maxDepth) deep") }
        // Longer paths are nobody's.
        let path = path.count > Self.maxNames ? Array(path.prefix(Self.maxNames + 1)) : path
        switch current {
        case UInt8(ascii: "\""):
            _ = scanBasicString(isLong: bytes[position...].starts(with: "\"\"\"".utf8))
        case UInt8(ascii: "'"):
            _ = scanLiteralString(isLong: bytes[position...].starts(with: "'''".utf8))
        case UInt8(ascii: "["): scanArray(path)
        case UInt8(ascii: "{"): scanInlineTable(path)
        default:
            let start = position
            while let byte = current, !"\n,]}#".utf8.contains(byte) { advance() }
            guard start < position, !TOMLPlainValue.isOne(bytes[start..<position]) else { return }
            position = start
            refuse("a value is none; text needs quotation marks")
        }
    }

    private mutating func scanArray(_ path: Path) {
        advance()
        var index = 0
        while current != nil {
            skipSpace()
            if take(UInt8(ascii: "]")) { return }
            if take(UInt8(ascii: ",")) { continue }
            if let byte = current, byte == UInt8(ascii: "}") || byte >= 0x80 {
                return refuse("an array lacks a value or its closing bracket")
            }
            let before = position
            let element = path + [Self.element(index)]
            note(element, line)
            scanValue(element)
            index += 1
            if position == before { advance() }
        }
    }

    private mutating func scanInlineTable(_ path: Path) {
        advance()
        while current != nil {
            skipSpace()
            if take(UInt8(ascii: "}")) { return }
            if take(UInt8(ascii: ",")) { continue }
            scanPair(below: path)
        }
    }
}

extension TOMLPositions {
    /// `'text'` or `'''text'''`: no escapes.
    private mutating func scanLiteralString(isLong: Bool) -> String {
        let quotes = isLong ? 3 : 1
        for _ in 0..<quotes { advance() }
        let start = position
        while current != nil, !isEnd(UInt8(ascii: "'"), isLong) { advance() }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        skipQuotes(UInt8(ascii: "'"), isLong)
        return text
    }

    /// `"text"` or `"""text"""`, with escapes read as keys need them (what a line's end escapes is no key's matter).
    private mutating func scanBasicString(isLong: Bool) -> String {
        let quotes = isLong ? 3 : 1
        for _ in 0..<quotes { advance() }
        var text: [UInt8] = []
        while let byte = current, !isEnd(UInt8(ascii: "\""), isLong) {
            advance()
            guard byte == UInt8(ascii: "\\"), let escape = current else {
                text.append(byte)
                continue
            }
            advance()
            switch escape {
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "e"): text.append(0x1B)
            case UInt8(ascii: "x"): text += scanScalar(digits: 2)
            case UInt8(ascii: "u"): text += scanScalar(digits: 4)
            case UInt8(ascii: "U"): text += scanScalar(digits: 8)
            default: text.append(escape)
            }
        }
        skipQuotes(UInt8(ascii: "\""), isLong)
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func scanScalar(digits: Int) -> [UInt8] {
        let end = min(position + digits, bytes.count)
        let value = UInt32(String(decoding: bytes[position..<end], as: UTF8.self), radix: 16)
        position = end
        if value == 0 { nulLines.append(line) }
        return Array(String(value.flatMap(Unicode.Scalar.init) ?? "\u{FFFD}").utf8)
    }

    private func isEnd(_ quote: UInt8, _ isLong: Bool) -> Bool {
        isLong ? bytes[position...].starts(with: [quote, quote, quote]) : current == quote
    }

    /// A long string may end in up to two quotes of its own.
    private mutating func skipQuotes(_ quote: UInt8, _ isLong: Bool) {
        if isLong {
            while take(quote) {}
        } else {
            _ = take(quote)
        }
    }
}
