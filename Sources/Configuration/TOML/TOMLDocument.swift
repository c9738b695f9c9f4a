internal import TOMLKit

/// A TOML text as a tree of values that know their lines: TOMLKit's judgement, ``TOMLPositions``' positions.
struct TOMLDocument {
    /// A value and where its key stands.
    struct Node: Equatable {
        let value: Value
        /// From 1.
        let line: Int
    }

    indirect enum Value: Equatable {
        case string(String)
        case integer(Int)
        case boolean(Bool)
        case array([Node])
        /// Sorted by key.
        case table([Member])
        /// Dates and the like, and tables nested deeper than any key of ours; the type's name.
        case other(String)

        /// What a person calls it, with its article.
        var name: String {
            switch self {
            case .string: "a string"
            case .integer: "an integer"
            case .boolean: "true or false"
            case .array: "an array"
            case .table: "a table"
            case .other(let name): name
            }
        }
    }

    struct Member: Equatable {
        let key: String
        let node: Node
    }

    /// The text is not TOML.
    struct SyntaxError: Error, Equatable {
        let line: Int?
        let message: String
    }

    /// More is no configuration. Bytes.
    static let maxSize = 1 << 20
    private static let maxDepth = 8

    let root: [Member]

    init(parsing bytes: [UInt8]) throws(SyntaxError) {
        guard bytes.count <= TOMLDocument.maxSize else {
            throw SyntaxError(line: nil, message: "is longer than \(TOMLDocument.maxSize) bytes")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SyntaxError(line: TOMLDocument.lineOfInvalidText(in: bytes), message: "is not UTF-8")
        }
        // The parser takes a C string and would not see what follows.
        if let end = bytes.firstIndex(of: 0) {
            throw SyntaxError(line: TOMLDocument.line(of: end, in: bytes), message: "a NUL character is not allowed")
        }
        // TOML has no place for others, and the parser ends the program over one in a table's header.
        let isControl = { (byte: UInt8) in byte == 0x7F || (byte < 0x20 && ![0x09, 0x0A, 0x0D].contains(byte)) }
        if let place = bytes.firstIndex(where: isControl) {
            throw SyntaxError(
                line: TOMLDocument.line(of: place, in: bytes), message: "a control character is not allowed")
        }
        let positions = TOMLPositions(scanning: bytes)
        if let refusal = positions.refusal {
            // The parser would end the program there. What it says of the text before comes first; the bracket keeps it
            // from the end of that text, which it takes for a mistake of the line before.
            do throws(SyntaxError) {
                _ = try TOMLDocument.parsed(String(decoding: bytes[..<refusal.offset], as: UTF8.self) + "]")
            } catch {
                if let line = error.line, line < refusal.line { throw error }
            }
            throw SyntaxError(line: refusal.line, message: refusal.message)
        }
        let table = try TOMLDocument.parsed(text)
        if let line = positions.nulLines.first {
            throw SyntaxError(line: line, message: "a NUL character is not allowed")
        }
        root = TOMLDocument.members(of: table, at: [], line: 1, positions)
    }

    private static func parsed(_ text: String) throws(SyntaxError) -> TOMLTable {
        do {
            return try TOMLTable(string: text)
        } catch let error as TOMLParseError {
            throw SyntaxError(line: error.source.begin.line, message: TOMLDocument.printable(error.description))
        } catch {
            throw SyntaxError(line: nil, message: "is not TOML")
        }
    }

    private static func members(
        of table: TOMLTable, at path: TOMLPositions.Path, line: Int, _ positions: TOMLPositions
    ) -> [Member] {
        table.keys.compactMap { key in
            guard let value = table[key] else { return nil }
            let path = path + [key]
            let line = positions.lines[path] ?? line
            return Member(key: key, node: node(of: value.tomlValue, at: path, line: line, positions))
        }
    }

    private static func node(
        of value: TOMLValue, at path: TOMLPositions.Path, line: Int, _ positions: TOMLPositions
    ) -> Node {
        Node(value: self.value(of: value, at: path, line: line, positions), line: line)
    }

    private static func value(
        of value: TOMLValue, at path: TOMLPositions.Path, line: Int, _ positions: TOMLPositions
    ) -> Value {
        switch value.type {
        case .string: return .string(value.string ?? "")
        case .int: return .integer(value.int ?? 0)
        case .bool: return .boolean(value.bool ?? false)
        case .double: return .other("a floating-point number")
        case .date, .time, .dateTime: return .other("a date or time")
        case .table:
            guard path.count < maxDepth, let table = value.table else { return .other("a table") }
            return .table(members(of: table, at: path, line: line, positions))
        case .array:
            guard path.count < maxDepth, let array = value.array else { return .other("an array") }
            return .array(
                array.enumerated().map { index, element in
                    let path = path + [TOMLPositions.element(index)]
                    let line = positions.lines[path] ?? line
                    return node(of: element.tomlValue, at: path, line: line, positions)
                })
        }
    }

    private static func line(of offset: Int, in bytes: [UInt8]) -> Int {
        1 + bytes[..<offset].count { $0 == 0x0A }
    }

    private static func lineOfInvalidText(in bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }

    /// The parser may quote a character of the file.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}
