/// The tables of a text while it is read. TOML allows a table to be written in several places, but each key only once.
/// This type enforces these rules (TOML 1.0.0, sections "Keys", "Table", "Inline Table" and "Array of Tables").
struct TOMLTree {
    /// A table, an array of tables, or a complete value.
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
        Failure(
            line: line, message: "\(KeyCheck.display(names)) is already defined in line \(entries[index].line)")
    }

    // MARK: The result

    /// The root's members.
    func members() -> [TOMLDocument.Member] { members(of: 0, depth: 0) }

    private func members(of table: Int, depth: Int) -> [TOMLDocument.Member] {
        TOMLTree.sorted(
            tables[table].keys.map { key, index in .init(key: key, node: node(entries[index], depth: depth + 1)) })
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

    static func sorted(_ members: [TOMLDocument.Member]) -> [TOMLDocument.Member] {
        members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
}
