/// The tables of a text while it is read. TOML allows a table to be written in several places, but each key only once.
/// This type enforces these rules (TOML 1.0.0, sections "Keys", "Table", "Inline Table" and "Array of Tables").
struct TOMLTree {
    enum Entry {
        /// The index of a table in ``tables``.
        case table(Int)
        /// `[[name]]`: the index of its list of tables in ``lists``.
        case tables(Int)
        /// A value after `=`, to which nothing can be added.
        case value(TOMLDocument.Value)
    }

    struct Table {
        enum Origin: Equatable {
            /// Created by a name before the last one in a header; its own header may still follow.
            case implied
            /// Created by its own header.
            case header
            /// Created by a name before the last one in a dotted key, in the section with this number.
            case dotted(section: Int)
        }

        var origin: Origin
        /// The line where it first occurs, from 1.
        var line = 1
        /// Indices in ``entries``.
        var keys: [String: Int] = [:]
    }

    private var entries: [(entry: Entry, line: Int)] = []
    /// The first one is the root. Tables are changed in place; copying them would take quadratic time.
    private var tables = [Table(origin: .header)]
    /// Indices in ``tables``.
    private var lists: [[Int]] = []
    /// The table to which pairs are added.
    private var current = 0
    /// Counts headers: a dotted key may add to a table that another dotted key of the same section has created.
    private var section = 0

    typealias Failure = TOMLDocument.SyntaxError

    /// Begins `[names]`.
    mutating func begin(table names: [String], line: Int) throws(Failure) {
        section += 1
        let parent = try parent(of: names, line)
        let name = names[names.count - 1]
        guard let index = tables[parent].keys[name] else {
            current = addTable(.header, name, to: parent, line)
            return
        }
        guard case .table(let table) = entries[index].entry, tables[table].origin == .implied else {
            throw redefined(names, index, line)
        }
        tables[table].origin = .header
        current = table
    }

    /// Begins `[[names]]`.
    mutating func begin(element names: [String], line: Int) throws(Failure) {
        section += 1
        let parent = try parent(of: names, line)
        let name = names[names.count - 1]
        if let index = tables[parent].keys[name] {
            guard case .tables(let list) = entries[index].entry else { throw redefined(names, index, line) }
            lists[list].append(tables.count)
        } else {
            lists.append([tables.count])
            add(.tables(lists.count - 1), name, to: parent, line)
        }
        current = tables.count
        tables.append(Table(origin: .header, line: line))
    }

    /// Adds `names = value` to the current table.
    mutating func set(_ names: [String], _ value: TOMLDocument.Value, line: Int) throws(Failure) {
        var place = current
        for (depth, name) in names.dropLast().enumerated() {
            guard let index = tables[place].keys[name] else {
                place = addTable(.dotted(section: section), name, to: place, line)
                continue
            }
            guard case .table(let table) = entries[index].entry, mayExtend(tables[table].origin) else {
                throw redefined(Array(names.prefix(depth + 1)), index, line)
            }
            place = table
        }
        let name = names[names.count - 1]
        if let index = tables[place].keys[name] { throw redefined(names, index, line) }
        add(.value(value), name, to: place, line)
    }

    private func mayExtend(_ origin: Table.Origin) -> Bool {
        switch origin {
        case .implied: true
        case .header: false
        case .dotted(let number): number == section
        }
    }

    /// The table that contains a header's last name.
    private mutating func parent(of names: [String], _ line: Int) throws(Failure) -> Int {
        var place = 0
        for (depth, name) in names.dropLast().enumerated() {
            guard let index = tables[place].keys[name] else {
                place = addTable(.implied, name, to: place, line)
                continue
            }
            switch entries[index].entry {
            case .table(let table): place = table
            // The name of an array of tables refers to the array's last element.
            case .tables(let list): place = lists[list][lists[list].count - 1]
            case .value: throw redefined(Array(names.prefix(depth + 1)), index, line)
            }
        }
        return place
    }

    private mutating func addTable(_ origin: Table.Origin, _ name: String, to place: Int, _ line: Int) -> Int {
        tables.append(Table(origin: origin, line: line))
        add(.table(tables.count - 1), name, to: place, line)
        return tables.count - 1
    }

    private mutating func add(_ entry: Entry, _ name: String, to place: Int, _ line: Int) {
        entries.append((entry, line))
        tables[place].keys[name] = entries.count - 1
    }

    private func redefined(_ names: [String], _ index: Int, _ line: Int) -> Failure {
        Failure(line: line, message: "\(KeyCheck.display(names)) is already defined in line \(entries[index].line)")
    }

    func members() -> [TOMLDocument.Member] { members(of: 0, depth: 0) }

    private func members(of table: Int, depth: Int) -> [TOMLDocument.Member] {
        tables[table].keys.map { key, index in .init(key: key, node: node(entries[index], depth: depth + 1)) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    private func node(_ entry: (entry: Entry, line: Int), depth: Int) -> TOMLDocument.Node {
        switch entry.entry {
        case .value(let value): return .init(value: TOMLTree.limited(value, depth: depth), line: entry.line)
        case .table(let table): return node(ofTable: table, depth: depth, entry.line)
        case .tables(let list):
            guard depth < TOMLDocument.maxDepth else { return .init(value: .other("an array"), line: entry.line) }
            let elements = lists[list].map { node(ofTable: $0, depth: depth + 1, tables[$0].line) }
            return .init(value: .array(elements), line: entry.line)
        }
    }

    private func node(ofTable table: Int, depth: Int, _ line: Int) -> TOMLDocument.Node {
        guard depth < TOMLDocument.maxDepth else { return .init(value: .other("a table"), line: line) }
        return .init(value: .table(members(of: table, depth: depth)), line: line)
    }

    /// The value without the parts that are nested too deep.
    private static func limited(_ value: TOMLDocument.Value, depth: Int) -> TOMLDocument.Value {
        switch value {
        case .array(let elements):
            guard depth < TOMLDocument.maxDepth else { return .other("an array") }
            return .array(elements.map { .init(value: limited($0.value, depth: depth + 1), line: $0.line) })
        case .table(let members):
            guard depth < TOMLDocument.maxDepth else { return .other("a table") }
            return .table(
                members.map { member in
                    .init(
                        key: member.key,
                        node: .init(value: limited(member.node.value, depth: depth + 1), line: member.node.line))
                })
        default: return value
        }
    }
}

/// A parsed TOML 1.0.0 text: a tree of values with their lines.
struct TOMLDocument {
    /// A value, and the first line of its key (for an array's element: of the value).
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
        /// Sorted by the bytes of the keys.
        case table([Member])
        /// A value that no key of the configuration accepts: a floating-point number, a date or time, or a value that
        /// is nested deeper than ``TOMLDocument/maxDepth``. The text is the type's name with its article.
        case other(String)

        /// The type's name with its article, for messages.
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

    /// The text is not valid TOML. The message is one line without control characters.
    struct SyntaxError: Error, Equatable {
        let line: Int?
        let message: String
    }

    /// The maximum size of a file in bytes.
    static let maxSize = 1 << 20
    /// Values below this depth become ``Value/other(_:)``.
    static let maxDepth = 8

    let root: [Member]

    /// - Throws: ``SyntaxError`` for text that TOML 1.0.0 does not allow, is longer than ``maxSize``, or is nested
    ///   deeper than ``TOMLReader/maxNesting``.
    init(parsing bytes: [UInt8]) throws(SyntaxError) {
        guard bytes.count <= TOMLDocument.maxSize else {
            throw SyntaxError(line: nil, message: "is longer than \(TOMLDocument.maxSize) bytes")
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw SyntaxError(line: TOMLDocument.lineOfInvalidText(in: bytes), message: "is not UTF-8")
        }
        var reader = TOMLReader(bytes)
        try reader.readAll()
        root = reader.tree.members()
    }

    private static func lineOfInvalidText(in bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }
}

/// Reads unquoted values: booleans, numbers, dates and times, strictly as in TOML 1.0.0.
enum TOMLPlainValue {
    /// - Parameter text: may end with blanks.
    /// - Returns: nil for other text, and for integers that do not fit into 64 bits.
    static func read(_ text: ArraySlice<UInt8>) -> TOMLDocument.Value? {
        var text = text
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        if text.elementsEqual("true".utf8) { return .boolean(true) }
        if text.elementsEqual("false".utf8) { return .boolean(false) }
        return readNumber(text) ?? (isMoment(text) ? .other("a date or time") : nil)
    }

    private static func readNumber(_ text: ArraySlice<UInt8>) -> TOMLDocument.Value? {
        let float = TOMLDocument.Value.other("a floating-point number")
        var cursor = Cursor(rest: text)
        let isSigned = cursor.take("+-")
        if ["inf", "nan"].contains(where: { cursor.rest.elementsEqual($0.utf8) }) { return float }
        for (prefix, digits, radix) in [("0x", "0123456789abcdefABCDEF", 16), ("0o", "01234567", 8), ("0b", "01", 2)]
        where !isSigned && text.starts(with: prefix.utf8) {
            cursor.rest = text.dropFirst(2)
            let number = cursor.rest
            return cursor.takeGroup(of: digits) && cursor.rest.isEmpty ? integer(number, radix) : nil
        }
        let whole = cursor.rest
        guard cursor.takeGroup(of: Cursor.decimal) else { return nil }
        guard whole.first != UInt8(ascii: "0") || whole.count - cursor.rest.count == 1 else { return nil }
        if cursor.rest.isEmpty { return integer(text, 10) }
        if cursor.take("."), !cursor.takeGroup(of: Cursor.decimal) { return nil }
        if cursor.take("eE") {
            _ = cursor.take("+-")
            guard cursor.takeGroup(of: Cursor.decimal) else { return nil }
        }
        return cursor.rest.isEmpty ? float : nil
    }

    private static func integer(_ text: ArraySlice<UInt8>, _ radix: Int) -> TOMLDocument.Value? {
        let digits = text.filter { $0 != UInt8(ascii: "_") }
        return Int(String(decoding: digits, as: UTF8.self), radix: radix).map { .integer($0) }
    }

    private static func isMoment(_ text: ArraySlice<UInt8>) -> Bool {
        var cursor = Cursor(rest: text)
        guard cursor.takeDate() else {
            cursor.rest = text
            return cursor.takeTime() && cursor.rest.isEmpty
        }
        guard !cursor.rest.isEmpty else { return true }
        guard cursor.take("Tt "), cursor.takeTime() else { return false }
        if !cursor.take("Zz"), cursor.take("+-") {
            guard let hour = cursor.takeNumber(2), hour < 24, cursor.take(":"), let minute = cursor.takeNumber(2),
                minute < 60
            else { return false }
        }
        return cursor.rest.isEmpty
    }

    private struct Cursor {
        static let decimal = "0123456789"
        var rest: ArraySlice<UInt8>

        /// Takes one of these characters.
        mutating func take(_ characters: String) -> Bool {
            guard let byte = rest.first, characters.utf8.contains(byte) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func takeNumber(_ count: Int) -> Int? {
            let text = rest.prefix(count)
            for _ in 0..<count where !take(Cursor.decimal) { return nil }
            return Int(String(decoding: text, as: UTF8.self))
        }

        /// Digits with single `_` between them.
        mutating func takeGroup(of digits: String) -> Bool {
            repeat {
                guard take(digits) else { return false }
                while take(digits) {}
            } while take("_")
            return true
        }

        mutating func takeDate() -> Bool {
            guard let year = takeNumber(4), take("-"), let month = takeNumber(2), take("-"), let day = takeNumber(2),
                (1...12).contains(month)
            else { return false }
            let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            let days = [31, isLeapYear ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            return (1...days[month - 1]).contains(day)
        }

        /// Accepts a leap second.
        mutating func takeTime() -> Bool {
            guard let hour = takeNumber(2), hour < 24, take(":"), let minute = takeNumber(2), minute < 60, take(":"),
                let second = takeNumber(2), second <= 60
            else { return false }
            guard take(".") else { return true }
            guard take(Cursor.decimal) else { return false }
            while take(Cursor.decimal) {}
            return true
        }
    }
}
