internal import RingbackBase

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

    /// Reads `[a.b]` or `[[a.b]]`.
    private mutating func readHeader() throws(Failure) {
        let line = line
        position += 1
        let isElement = take(UInt8(ascii: "["))
        let names = try readKey()
        guard take(UInt8(ascii: "]")), !isElement || take(UInt8(ascii: "]")) else {
            throw failure("the table's name must end with \(isElement ? "]]" : "]")")
        }
        if isElement { try tree.begin(element: names, line: line) } else { try tree.begin(table: names, line: line) }
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
            case let mark? where mark == UInt8(ascii: "\"") || mark == UInt8(ascii: "'"):
                names.append(try readString(mark, isKey: true))
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

    private mutating func readValue() throws(Failure) -> TOMLDocument.Value {
        depth += 1
        defer { depth -= 1 }
        guard depth <= TOMLReader.maxNesting else {
            throw failure("values are nested more than \(TOMLReader.maxNesting) deep")
        }
        switch current {
        case let mark? where mark == UInt8(ascii: "\"") || mark == UInt8(ascii: "'"):
            return .string(try readString(mark))
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

    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// True if this byte and the next two are `byte`.
    func isBeforeThree(_ byte: UInt8) -> Bool {
        position + 2 < bytes.count && bytes[position] == byte && bytes[position + 1] == byte
            && bytes[position + 2] == byte
    }

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

    static func isBare(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || "_-".utf8.contains(byte) }
}

/// Reads the four kinds of strings (TOML 1.0.0, section "String").
extension TOMLReader {
    /// Reads a string, from its opening mark to its closing one: `"text"` with escapes, `'text'` without. Between three
    /// marks on each side it may have several lines, unless it is a key.
    mutating func readString(_ mark: UInt8, isKey: Bool = false) throws(Failure) -> String {
        let isLong = !isKey && isBeforeThree(mark)
        position += isLong ? 3 : 1
        if isLong {
            // A line end directly after the opening marks does not count.
            if isBeforeCRLF { position += 1 }
            if take(0x0A) { line += 1 }
        }
        var text: [UInt8] = []
        while let byte = current {
            if isLong ? isBeforeThree(mark) : byte == mark {
                position += isLong ? 3 : 1
                // Up to two quotation marks before the three closing ones belong to the string.
                if isLong { for _ in 0..<2 where take(mark) { text.append(mark) } }
                return String(decoding: text, as: UTF8.self)
            }
            position += 1
            switch byte {
            case UInt8(ascii: "\\") where mark == UInt8(ascii: "\""):
                if !isLong || !skipEscapedLineEnd() { text += try readEscape() }
            case 0x0A, 0x0D:
                guard isLong else { throw failure("a string lacks its closing quotation mark in this line") }
                // CRLF becomes a line feed, so that the value does not depend on the editor.
                guard byte == 0x0A else {
                    guard current == 0x0A else { throw failure("a control character is not allowed") }
                    continue
                }
                line += 1
                text.append(byte)
            default:
                try check(character: byte)
                text.append(byte)
            }
        }
        throw failure("a string lacks its \(isLong ? "three closing quotation marks" : "closing quotation mark")")
    }

    /// Skips a backslash at the end of a line, the line end and the white space after it.
    private mutating func skipEscapedLineEnd() -> Bool {
        var end = position
        while end < bytes.count, bytes[end] == 0x20 || bytes[end] == 0x09 { end += 1 }
        if end < bytes.count, bytes[end] == 0x0D { end += 1 }
        guard end < bytes.count, bytes[end] == 0x0A else { return false }
        position = end
        while let byte = current {
            if byte == 0x0A { line += 1 } else if isBeforeCRLF {} else if byte != 0x20, byte != 0x09 { break }
            position += 1
        }
        return true
    }

    private mutating func readEscape() throws(Failure) -> [UInt8] {
        guard let byte = current else { throw failure("a string lacks its closing quotation mark") }
        position += 1
        switch byte {
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return [byte]
        case UInt8(ascii: "u"): return try readScalar(digits: 4)
        case UInt8(ascii: "U"): return try readScalar(digits: 8)
        default: throw failure("a backslash in a string must begin an escape; for a plain one write \\\\, or use '…'")
        }
    }

    private mutating func readScalar(digits: Int) throws(Failure) -> [UInt8] {
        let end = position + digits
        guard end <= bytes.count else { throw failure("a string lacks its closing quotation mark") }
        let text = bytes[position..<end]
        guard text.allSatisfy({ $0.hexValue != nil }),
            let value = UInt32(String(decoding: text, as: UTF8.self), radix: 16),
            let scalar = Unicode.Scalar(value)
        else { throw failure("an escape \\u needs 4 hexadecimal digits, \\U 8, of a Unicode scalar value") }
        // No value may contain NUL, because C functions would cut the text there.
        guard value != 0 else { throw failure("a NUL character is not allowed") }
        position = end
        return Array(String(scalar).utf8)
    }
}
