/// Reads a TOML text byte by byte. The text must be valid UTF-8.
struct TOMLReader {
    typealias Failure = TOMLDocument.SyntaxError

    /// The maximum depth of arrays and inline tables, and of names in a key, because each level uses stack.
    static let maxNesting = 64

    let bytes: [UInt8]
    var position = 0
    /// The line of ``position``, from 1.
    var line = 1
    private var depth = 0
    private(set) var tree = TOMLTree()

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        // Some editors write a byte order mark at the start.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Reads the whole text into ``tree``.
    mutating func readAll() throws(Failure) {
        while position < bytes.count {
            skipBlanks()
            switch current {
            case nil: return
            case UInt8(ascii: "["): try readHeader()
            case UInt8(ascii: "#"), 0x0A, 0x0D: break
            default:
                let line = line
                let names = try readKey()
                try tree.set(names, try readAssigned(), line: line)
            }
            try readLineEnd()
        }
    }

    // MARK: Statements

    /// Reads `[a.b]` or `[[a.b]]`.
    private mutating func readHeader() throws(Failure) {
        let line = line
        position += 1
        let isElement = take(UInt8(ascii: "["))
        let names = try readKey()
        guard take(UInt8(ascii: "]")), !isElement || take(UInt8(ascii: "]")) else {
            throw failure("the table's name must end with \(isElement ? "]]" : "]")")
        }
        if isElement {
            try tree.begin(element: names, line: line)
        } else {
            try tree.begin(table: names, line: line)
        }
    }

    private mutating func readAssigned() throws(Failure) -> TOMLDocument.Value {
        guard take(UInt8(ascii: "=")) else { throw failure("a key must be followed by = and a value") }
        skipBlanks()
        return try readValue()
    }

    /// The names of a dotted key, including the blanks around them.
    private mutating func readKey() throws(Failure) -> [String] {
        var names: [String] = []
        repeat {
            skipBlanks()
            switch current {
            case UInt8(ascii: "\""): names.append(try readBasicString())
            case UInt8(ascii: "'"): names.append(try readLiteralString())
            default:
                let start = position
                while let byte = current, TOMLReader.isBare(byte) { position += 1 }
                guard position > start else {
                    throw failure("a name is missing, or has a character that needs quotation marks")
                }
                names.append(String(decoding: bytes[start..<position], as: UTF8.self))
            }
            guard names.count <= TOMLReader.maxNesting else {
                throw failure("a key has more than \(TOMLReader.maxNesting) names")
            }
            skipBlanks()
        } while take(UInt8(ascii: "."))
        return names
    }

    // MARK: Values

    private mutating func readValue() throws(Failure) -> TOMLDocument.Value {
        depth += 1
        defer { depth -= 1 }
        guard depth <= TOMLReader.maxNesting else {
            throw failure("values are nested more than \(TOMLReader.maxNesting) deep")
        }
        switch current {
        case UInt8(ascii: "\""):
            return .string(try isBeforeThree(UInt8(ascii: "\"")) ? readLongBasicString() : readBasicString())
        case UInt8(ascii: "'"):
            return .string(try isBeforeThree(UInt8(ascii: "'")) ? readLongLiteralString() : readLiteralString())
        case UInt8(ascii: "["): return .array(try readArray())
        case UInt8(ascii: "{"): return .table(try readInlineTable())
        default:
            let start = position
            while let byte = current, !TOMLReader.endsPlainValue(byte) { position += 1 }
            guard let value = TOMLPlainValue.read(bytes[start..<position]) else {
                position = start
                throw failure("a value is missing or not one that TOML knows; text needs quotation marks")
            }
            return value
        }
    }

    private mutating func readArray() throws(Failure) -> [TOMLDocument.Node] {
        position += 1
        var elements: [TOMLDocument.Node] = []
        while true {
            try skipSpace()
            if take(UInt8(ascii: "]")) { return elements }
            let line = line
            elements.append(TOMLDocument.Node(value: try readValue(), line: line))
            try skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "]")) else {
                throw failure("an array needs a comma between values, and ] at its end")
            }
            return elements
        }
    }

    /// Reads an inline table. It must be on one line, except for line ends inside its values. Its keys may be dotted.
    /// Nothing can be added to it later.
    private mutating func readInlineTable() throws(Failure) -> [TOMLDocument.Member] {
        position += 1
        var table = TOMLTree()
        skipBlanks()
        if take(UInt8(ascii: "}")) { return [] }
        while true {
            skipBlanks()
            let line = line
            let names = try readKey()
            try table.set(names, try readAssigned(), line: line)
            skipBlanks()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else {
                throw failure("an inline table needs a comma between its pairs, and } at its end, on one line")
            }
            return table.members()
        }
    }

    // MARK: Parts

    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// True if this byte and the next two are `byte`.
    func isBeforeThree(_ byte: UInt8) -> Bool {
        position + 2 < bytes.count && bytes[position] == byte && bytes[position + 1] == byte
            && bytes[position + 2] == byte
    }

    /// True at a carriage return that is followed by a line feed.
    var isBeforeCRLF: Bool {
        position + 1 < bytes.count && bytes[position] == 0x0D && bytes[position + 1] == 0x0A
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    func failure(_ message: String) -> Failure { Failure(line: line, message: message) }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x09 { position += 1 }
    }

    /// Skips blanks, line ends and comments, as allowed in an array.
    private mutating func skipSpace() throws(Failure) {
        while true {
            skipBlanks()
            guard let byte = current, byte == 0x0A || byte == 0x0D || byte == UInt8(ascii: "#") else { return }
            try readLineEnd()
        }
    }

    /// Reads an optional comment and the end of the line or the text.
    private mutating func readLineEnd() throws(Failure) {
        skipBlanks()
        if take(UInt8(ascii: "#")) {
            while let byte = current, byte != 0x0A, !isBeforeCRLF {
                try check(character: byte)
                position += 1
            }
        }
        guard current != nil else { return }
        if isBeforeCRLF { position += 1 }
        guard take(0x0A) else { throw failure("the line goes on after the value; text needs quotation marks") }
        line += 1
    }

    /// TOML allows no control characters except the tab.
    func check(character byte: UInt8) throws(Failure) {
        guard byte == 0x7F || (byte < 0x20 && byte != 0x09) else { return }
        throw failure(byte == 0 ? "a NUL character is not allowed" : "a control character is not allowed")
    }

    private static func endsPlainValue(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: "#"), 0x0A, 0x0D: true
        default: false
        }
    }

    private static func isBare(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
