internal import RingbackBase

/// Compares a file's tree with the key table and collects the errors. The result has only known keys with values of the
/// right type, so the readers need not check that again.
final class KeyCheck {
    let file: String
    let isDropIn: Bool
    private(set) var errors: [ConfigurationError] = []
    private var unreported = 0

    /// The maximum number of reported errors of one file; further ones are only counted.
    static let maxErrors = 200
    /// The paths of keys that have an error, or were probably meant by misspelt ones: they are not reported as missing.
    private(set) var mistaken: Set<[String]> = []

    init(file: String, isDropIn: Bool) {
        self.file = file
        self.isDropIn = isDropIn
    }

    /// The valid members of the table at `path`.
    func check(_ members: [TOMLDocument.Member], as section: Key.Section, at path: [String]) -> [TOMLDocument.Member] {
        let allowed = Key.allowed(in: section).filter { !isDropIn || $0.value.isForDropIns }
        return members.compactMap { member in
            let path = path + [member.key]
            guard let key = allowed[member.key] else {
                refuseUnknown(member.node, path, section, allowed.keys.sorted())
                return nil
            }
            return checkKind(member.node, key.kind, path).map { .init(key: member.key, node: $0) }
        }
    }

    /// The errors in the order of the file, and the number of further ones.
    var report: [ConfigurationError] {
        // Errors in the same line are sorted too, so that the order is always the same.
        let sorted = errors.sorted {
            ($0.line ?? 0, $0.key ?? "", $0.message) < ($1.line ?? 0, $1.key ?? "", $1.message)
        }
        guard unreported > 0 else { return sorted }
        let rest = "has \(unreported) more mistakes, which are not shown"
        return sorted + [ConfigurationError(file: file, message: rest)]
    }

    func refuse(_ node: TOMLDocument.Node, _ path: [String], _ mistake: Mistake) {
        mistaken.insert(path)
        guard errors.count < KeyCheck.maxErrors else {
            unreported += 1
            return
        }
        errors.append(
            ConfigurationError(
                file: file, line: node.line, key: KeyCheck.display(path), message: mistake.message,
                cause: mistake.cause))
    }

    private func refuse(_ node: TOMLDocument.Node, _ path: [String], _ message: String) {
        refuse(node, path, Mistake(message))
    }

    private func refuseUnknown(
        _ node: TOMLDocument.Node, _ path: [String], _ section: Key.Section, _ allowed: [String]
    ) {
        // The error is only counted, so a similar key need not be searched.
        guard errors.count < KeyCheck.maxErrors else { return refuse(node, path, "") }
        let name = path.last ?? ""
        let list = allowed.joined(separator: ", ")
        if isDropIn, Key.allowed(in: section)[name] != nil {
            refuse(node, path, "belongs in the user's own configuration; a drop-in may have \(list)")
        } else if let nearest = NearestWord.find(for: name, among: allowed) {
            mistaken.insert(path.dropLast() + [nearest])
            refuse(node, path, "unknown key; did you mean \(nearest)?")
        } else {
            refuse(node, path, "unknown key; allowed here: \(list)")
        }
    }

    private func checkKind(
        _ node: TOMLDocument.Node, _ kind: Key.Kind, _ path: [String], isElement: Bool = false
    ) -> TOMLDocument.Node? {
        let subject = isElement ? "each element " : ""
        switch (kind, node.value) {
        case (.string, .string), (.texts, .string), (.boolean, .boolean), (.span, .integer), (.span, .string):
            return node
        case (.word(let words), .string(let word)):
            guard !words.contains(word) else { return node }
            let list = words.map { "\"\($0)\"" }.joined(separator: ", ")
            let hint = words.count > 1 ? NearestWord.hint(for: word, among: words, shown: { "\"\($0)\"" }) : ""
            refuse(node, path, "must be \(words.count > 1 ? "one of " : "")\(list)\(hint)")
            return nil
        case (.integer(let range), .integer(let number)):
            guard !range.contains(number) else { return node }
            refuse(node, path, "\(subject)must be from \(range.lowerBound) to \(range.upperBound)")
            return nil
        case (.strings, .array(let elements)), (.texts, .array(let elements)):
            return checkElements(elements, .string, path) ? node : nil
        case (.integers(let range), .array(let elements)):
            return checkElements(elements, .integer(range), path) ? node : nil
        case (.stringTable, .table(let members)):
            let isGood = members.map { checkKind($0.node, .string, path + [$0.key]) != nil }
            return isGood.contains(false) ? nil : node
        case (.section(let section), .table(let members)):
            return .init(value: .table(check(members, as: section, at: path)), line: node.line)
        case (.sections(let section), .table(let members)):
            let tables = members.compactMap { member in
                checkKind(member.node, .section(section), path + [member.key]).map {
                    TOMLDocument.Member(key: member.key, node: $0)
                }
            }
            return .init(value: .table(tables), line: node.line)
        case (.list(let section), .array(let elements)):
            let tables = elements.enumerated().compactMap { index, element in
                checkKind(element, .section(section), path + [String(index + 1)])
            }
            return .init(value: .array(tables), line: node.line)
        default:
            refuse(node, path, "\(subject)must be \(KeyCheck.name(of: kind)), not \(node.value.name)")
            return nil
        }
    }

    private func checkElements(_ elements: [TOMLDocument.Node], _ kind: Key.Kind, _ path: [String]) -> Bool {
        let isGood = elements.map { checkKind($0, kind, path, isElement: true) != nil }
        return !isGood.contains(false)
    }

    private static func name(of kind: Key.Kind) -> String {
        switch kind {
        case .string, .word: "a string"
        case .integer: "an integer"
        case .boolean: "true or false"
        case .strings: "an array of strings"
        case .texts: "a string or an array of strings"
        case .integers: "an array of integers"
        case .stringTable: "a table of strings"
        case .section: "a table"
        case .sections: "a table of tables"
        case .list: "an array of tables"
        case .span: "seconds, or a span such as \"8h\""
        }
    }

    /// The path in TOML's form, on one line for any names.
    static func display(_ path: [String]) -> String {
        path.map { name in
            let isBare = !name.isEmpty && name.utf8.allSatisfy(TOMLReader.isBare)
            return isBare ? name : "\"\(name.unicodeScalars.map(escaped).joined())\""
        }.joined(separator: ".")
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: "\\u{\(String(scalar.value, radix: 16))}"
        default: scalar == "\"" || scalar == "\\" ? "\\\(scalar)" : "\(scalar)"
        }
    }
}
