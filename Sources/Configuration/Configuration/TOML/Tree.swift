internal import RingbackBase

/// The tables of a text while it is read. TOML allows a table to be written in several places, but each key only once.
/// This type enforces these rules (TOML 1.0.0, sections "Keys", "Table", "Inline Table" and "Array of Tables").
struct TOMLTree {
    private enum Entry {
        case table(Table)
        /// `[[name]]`
        case tables(List)
        /// A value after `=`, to which nothing can be added.
        case value(TOMLDocument.Value)
    }

    /// Tables and lists are changed in place; copying them would take quadratic time.
    private final class Table {
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
        let line: Int
        var keys: [String: (entry: Entry, line: Int)] = [:]

        init(_ origin: Origin, line: Int) { (self.origin, self.line) = (origin, line) }

        func add(_ name: String, _ origin: Origin, line: Int) -> Table {
            let table = Table(origin, line: line)
            keys[name] = (.table(table), line)
            return table
        }
    }

    private final class List {
        var tables: [Table] = []
    }

    private let root: Table
    /// The table to which pairs are added.
    private var current: Table
    /// Counts headers: a dotted key may add to a table that another dotted key of the same section has created.
    private var section = 0

    typealias Failure = TOMLDocument.SyntaxError

    init() {
        root = Table(.header, line: 1)
        current = root
    }

    /// Begins `[names]`.
    mutating func begin(table names: [String], line: Int) throws(Failure) {
        section += 1
        let (parent, name) = try parent(of: names, line)
        switch parent.keys[name]?.entry {
        case nil: current = parent.add(name, .header, line: line)
        case .table(let table)? where table.origin == .implied:
            table.origin = .header
            current = table
        default: throw TOMLTree.redefined(names, in: parent, line)
        }
    }

    /// Begins `[[names]]`.
    mutating func begin(element names: [String], line: Int) throws(Failure) {
        section += 1
        let (parent, name) = try parent(of: names, line)
        if parent.keys[name] == nil { parent.keys[name] = (.tables(List()), line) }
        guard case .tables(let list)? = parent.keys[name]?.entry else {
            throw TOMLTree.redefined(names, in: parent, line)
        }
        current = Table(.header, line: line)
        list.tables.append(current)
    }

    /// Adds `names = value` to the current table.
    mutating func set(_ names: [String], _ value: TOMLDocument.Value, line: Int) throws(Failure) {
        var place = current
        for (depth, name) in names.dropLast().enumerated() {
            switch place.keys[name]?.entry {
            case nil: place = place.add(name, .dotted(section: section), line: line)
            case .table(let table)? where [.implied, .dotted(section: section)].contains(table.origin): place = table
            default: throw TOMLTree.redefined(names.prefix(depth + 1), in: place, line)
            }
        }
        let name = names[names.count - 1]
        guard place.keys[name] == nil else { throw TOMLTree.redefined(names, in: place, line) }
        place.keys[name] = (.value(value), line)
    }

    /// The table that contains a header's last name, and that name.
    private func parent(of names: [String], _ line: Int) throws(Failure) -> (Table, String) {
        var place = root
        for (depth, name) in names.dropLast().enumerated() {
            switch place.keys[name]?.entry {
            case nil: place = place.add(name, .implied, line: line)
            case .table(let table)?: place = table
            // The name of an array of tables refers to the array's last element.
            case .tables(let list)?: place = list.tables[list.tables.count - 1]
            case .value?: throw TOMLTree.redefined(names.prefix(depth + 1), in: place, line)
            }
        }
        return (place, names[names.count - 1])
    }

    /// The last of the names is in the table already.
    private static func redefined(_ names: some Collection<String>, in table: Table, _ line: Int) -> Failure {
        let names = Array(names)
        let former = table.keys[names[names.count - 1]]?.line ?? line
        return Failure(line: line, message: "\(KeyCheck.display(names)) is already defined in line \(former)")
    }

    func members() -> [TOMLDocument.Member] { TOMLTree.members(of: root, depth: 0) }

    private static func members(of table: Table, depth: Int) -> [TOMLDocument.Member] {
        table.keys.map { key, entry in .init(key: key, node: node(entry, depth: depth + 1)) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    private static func node(_ entry: (entry: Entry, line: Int), depth: Int) -> TOMLDocument.Node {
        switch entry.entry {
        case .value(let value): return .init(value: limited(value, depth: depth), line: entry.line)
        case .table(let table): return node(ofTable: table, depth: depth, entry.line)
        case .tables(let list):
            guard depth < TOMLDocument.maxDepth else { return .init(value: .other("an array"), line: entry.line) }
            let elements = list.tables.map { node(ofTable: $0, depth: depth + 1, $0.line) }
            return .init(value: .array(elements), line: entry.line)
        }
    }

    private static func node(ofTable table: Table, depth: Int, _ line: Int) -> TOMLDocument.Node {
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
            return (1...Calendar.length(ofMonth: month, year)).contains(day)
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
