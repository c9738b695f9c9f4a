/// The tables of a text while it is read. TOML lets a table be written in several places, but each key only once; this type
/// keeps those rules (TOML 1.0.0, sections "Keys", "Table", "Inline Table" and "Array of Tables").
struct TOMLTree {
    /// A table, an array of tables, or a finished value. Tables refer to each other by their index in ``entries``.
    enum Entry {
        case table(Table)
        /// `[[name]]`: the indices of its tables.
        case tables([Int])
        /// A value behind `=`, which nothing can be added to.
        case value(TOMLDocument.Value)
    }

    struct Table {
        enum Origin: Equatable {
            /// A name before the last one of a header: the table itself may still be written.
            case implied
            /// Written by its own header.
            case header
            /// A name before the last one of a dotted key, below the header with this number.
            case dotted(section: Int)
        }

        var origin: Origin
        var keys: [String: Int] = [:]
    }

    private(set) var entries: [(entry: Entry, line: Int)] = [(.table(Table(origin: .header)), 1)]
    /// The table that pairs are added to.
    private var current = 0
    /// Counts headers: a dotted key may add to a table that another dotted key below the same header began.
    private var section = 0

    typealias Failure = TOMLDocument.SyntaxError

    /// `[names]`
    mutating func begin(table names: [String], line: Int) throws(Failure) {
        section += 1
        let parent = try parent(of: names, line)
        let name = names[names.count - 1]
        guard let index = try table(parent).keys[name] else {
            current = add(.table(Table(origin: .header)), name, to: parent, line)
            return
        }
        guard case .table(var table) = entries[index].entry, table.origin == .implied else {
            throw redefined(names, index, line)
        }
        table.origin = .header
        entries[index].entry = .table(table)
        current = index
    }

    /// `[[names]]`
    mutating func begin(element names: [String], line: Int) throws(Failure) {
        section += 1
        let parent = try parent(of: names, line)
        let name = names[names.count - 1]
        entries.append((.table(Table(origin: .header)), line))
        current = entries.count - 1
        guard let index = try table(parent).keys[name] else {
            _ = add(.tables([current]), name, to: parent, line)
            return
        }
        guard case .tables(var elements) = entries[index].entry else { throw redefined(names, index, line) }
        // The entry must not hold a second reference while the array grows.
        entries[index].entry = .tables([])
        elements.append(current)
        entries[index].entry = .tables(elements)
    }

    /// `names = value`, below the last header.
    mutating func set(_ names: [String], _ value: TOMLDocument.Value, line: Int) throws(Failure) {
        var place = current
        for (depth, name) in names.dropLast().enumerated() {
            guard let index = try table(place).keys[name] else {
                place = add(.table(Table(origin: .dotted(section: section))), name, to: place, line)
                continue
            }
            guard case .table(let table) = entries[index].entry, mayExtend(table.origin) else {
                throw redefined(Array(names.prefix(depth + 1)), index, line)
            }
            place = index
        }
        let name = names[names.count - 1]
        if let index = try table(place).keys[name] { throw redefined(names, index, line) }
        _ = add(.value(value), name, to: place, line)
    }

    private func mayExtend(_ origin: Table.Origin) -> Bool {
        switch origin {
        case .implied: true
        case .header: false
        case .dotted(let number): number == section
        }
    }

    /// The table that a header's last name belongs to.
    private mutating func parent(of names: [String], _ line: Int) throws(Failure) -> Int {
        var place = 0
        for (depth, name) in names.dropLast().enumerated() {
            guard let index = try table(place).keys[name] else {
                place = add(.table(Table(origin: .implied)), name, to: place, line)
                continue
            }
            switch entries[index].entry {
            case .table: place = index
            // Below an array of tables its last element is meant.
            case .tables(let elements): place = elements[elements.count - 1]
            case .value: throw redefined(Array(names.prefix(depth + 1)), index, line)
            }
        }
        return place
    }

    private func table(_ index: Int) throws(Failure) -> Table {
        guard case .table(let table) = entries[index].entry else {
            throw Failure(line: entries[index].line, message: "a value stands where a table is needed")
        }
        return table
    }

    private mutating func add(_ entry: Entry, _ name: String, to place: Int, _ line: Int) -> Int {
        entries.append((entry, line))
        if case .table(var table) = entries[place].entry {
            // The entry must not hold a second reference while the table changes.
            entries[place].entry = .tables([])
            table.keys[name] = entries.count - 1
            entries[place].entry = .table(table)
        }
        return entries.count - 1
    }

    private func redefined(_ names: [String], _ index: Int, _ line: Int) -> Failure {
        Failure(
            line: line, message: "\(KeyCheck.display(names)) is already defined in line \(entries[index].line)")
    }

    // MARK: The result

    /// The root's members.
    func members() -> [TOMLDocument.Member] { members(of: 0, depth: 0) }

    private func members(of index: Int, depth: Int) -> [TOMLDocument.Member] {
        guard case .table(let table) = entries[index].entry else { return [] }
        return TOMLTree.sorted(
            table.keys.map { key, index in .init(key: key, node: node(index, depth: depth + 1)) })
    }

    private func node(_ index: Int, depth: Int) -> TOMLDocument.Node {
        let line = entries[index].line
        switch entries[index].entry {
        case .value(let value):
            return .init(value: TOMLTree.limited(value, depth: depth), line: line)
        case .table:
            guard depth < TOMLDocument.maxDepth else { return .init(value: .other("a table"), line: line) }
            return .init(value: .table(members(of: index, depth: depth)), line: line)
        case .tables(let elements):
            guard depth < TOMLDocument.maxDepth else { return .init(value: .other("an array"), line: line) }
            return .init(value: .array(elements.map { node($0, depth: depth + 1) }), line: line)
        }
    }

    /// The value without what is nested too deep for any key of ours.
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

    static func sorted(_ members: [TOMLDocument.Member]) -> [TOMLDocument.Member] {
        members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
}
