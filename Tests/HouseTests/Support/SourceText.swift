// Swift source as far as the layout tests read it: which lines are code, which module is imported, and how many lines of
// code each type has. A lexer for comments and strings, not a parser: braces and names of declarations are enough.

struct SourceText {
    /// The lines without comments and without what stands in strings; quotation marks stay.
    let lines: [String]
    let imports: Set<String>

    /// What stands in strings, without what is put in. Strings that are joined by `+` are one.
    let strings: [String]

    /// Every string, those within interpolations too, with `\(` for each value that is put in, and `\(shown:` for a
    /// command. Strings that are joined by `+` are one; what else is joined counts as a value.
    let literals: [Literal]

    struct Literal {
        var text: String
        /// It is a `ShownCommand`, by its place in the code.
        var isShownCommand: Bool
    }

    init(_ text: String) {
        var lexer = SourceLexer(text)
        let code = lexer.run()
        strings = lexer.strings
        literals = lexer.literals
        lines = code.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        imports = Set(lines.compactMap(SourceText.module))
    }

    private static func isCode(_ line: String) -> Bool { line.utf8.contains { $0 > 0x20 } }

    private static func module(_ line: String) -> String? {
        guard line.contains("import ") else { return nil }
        let words = line.split(separator: " ").drop {
            ["public", "package", "internal", "private", "fileprivate"].contains($0) || $0.hasPrefix("@")
        }
        return words.first == "import" ? words.dropFirst().first.map(String.init) : nil
    }

    /// A part of a type: its declaration, or an extension.
    struct Part {
        /// With the names of the types around it: `Outer.Inner`.
        let name: String
        let keyword: String
        /// Code that belongs to no type within this one.
        var lines = 0
    }

    private static let keywords: Set<Substring> = ["struct", "class", "enum", "actor", "protocol", "extension"]

    var parts: [Part] {
        var found: [Part] = []
        // One element for each open brace: the part that it opened, if it opened one.
        var open: [Int?] = []
        var announced: (keyword: String, name: String)?
        for line in lines where SourceText.isCode(line) {
            var owner = open.last { $0 != nil } ?? nil
            for token in SourceText.tokens(line) {
                switch token {
                case .open:
                    if let (keyword, name) = announced {
                        let around = (open.last { $0 != nil } ?? nil).map { found[$0].name + "." } ?? ""
                        found.append(Part(name: around + name, keyword: keyword))
                        open.append(found.count - 1)
                        owner = found.count - 1
                        announced = nil
                    } else {
                        open.append(nil)
                    }
                case .close: _ = open.popLast()
                case .declaration(let keyword, let name): announced = (keyword, name)
                }
            }
            if let owner { found[owner].lines += 1 }
        }
        return found
    }

    private enum Token {
        case open, close
        case declaration(String, String)
    }

    private static func tokens(_ line: String) -> [Token] {
        var tokens: [Token] = []
        var keyword: Substring?
        var word = line.utf8.startIndex
        func end(_ index: String.Index) {
            defer { word = line.utf8.index(after: index) }
            guard word < index else { return }
            let text = line[word..<index]
            if let earlier = keyword {
                // `class func` declares no type.
                let isType = !["func", "var", "let", "subscript"].contains(text)
                if isType { tokens.append(.declaration(String(earlier), String(text))) }
                keyword = nil
            } else if keywords.contains(text) {
                keyword = text
            }
        }
        for index in line.utf8.indices {
            let byte = line.utf8[index]
            let isName =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "`") || byte > 0x7F
            if isName { continue }
            end(index)
            if byte != 0x20 { keyword = nil }
            if byte == UInt8(ascii: "{") { tokens.append(.open) }
            if byte == UInt8(ascii: "}") { tokens.append(.close) }
        }
        if word < line.utf8.endIndex { end(line.utf8.endIndex) }
        return tokens
    }
}

/// Takes comments and the contents of strings away. What stands in an interpolation goes with its string.
private struct SourceLexer {
    private let text: [UInt8]
    private var position = 0
    private var kept: [UInt8] = []
    /// The strings outside of interpolations, and where each ends in what is kept.
    private(set) var strings: [String] = []
    private var end: Int?
    private(set) var literals: [SourceText.Literal] = []
    /// The literal that a plus sign would continue.
    private var continued: Int?

    init(_ text: String) {
        self.text = Array(text.utf8)
        kept.reserveCapacity(self.text.count)
    }

    mutating func run() -> String {
        code(until: nil, isKept: true)
        return String(decoding: kept, as: UTF8.self)
    }

    private func sees(_ word: String, at offset: Int = 0) -> Bool {
        guard position + offset + word.utf8.count <= text.count else { return false }
        return word.utf8.enumerated().allSatisfy { text[position + offset + $0.offset] == $0.element }
    }

    private mutating func keep(_ byte: UInt8, isKept: Bool = true) {
        if isKept || byte == 0x0A { kept.append(byte) }
    }

    /// Reads code up to its end, or up to the parenthesis that closes an interpolation.
    private mutating func code(until closing: UInt8?, isKept: Bool) {
        var depth = 1
        while position < text.count {
            if sees("//") {
                while position < text.count, text[position] != 0x0A { position += 1 }
            } else if sees("/*") {
                comment()
            } else if let (hashes, isLong) = quotation() {
                string(hashes: hashes, isLong: isLong)
            } else {
                let byte = text[position]
                position += 1
                if closing != nil {
                    if byte == UInt8(ascii: "(") { depth += 1 }
                    if byte == closing { depth -= 1 }
                    if depth == 0 { return }
                }
                keep(byte, isKept: isKept)
            }
        }
    }

    private mutating func comment() {
        var depth = 0
        repeat {
            if sees("/*") {
                depth += 1
                position += 2
            } else if sees("*/") {
                depth -= 1
                position += 2
            } else {
                keep(text[position], isKept: false)
                position += 1
            }
        } while depth > 0 && position < text.count
    }

    /// Whether a string begins here: how many number signs it has, and whether it may have several lines.
    private func quotation() -> (hashes: Int, isLong: Bool)? {
        guard text[position] == UInt8(ascii: "\"") || text[position] == UInt8(ascii: "#") else { return nil }
        var hashes = 0
        while sees("#", at: hashes) { hashes += 1 }
        guard sees("\"", at: hashes) else { return nil }
        return (hashes, sees("\"\"\"", at: hashes))
    }

    /// Adds a string, to the one before where only a plus sign is between them.
    private mutating func add(_ bytes: [UInt8], at start: Int) {
        let text = String(decoding: bytes, as: UTF8.self)
        let between = end.map { kept[$0..<start].filter { $0 > 0x20 } }
        if between == [UInt8(ascii: "+")], let last = strings.popLast() {
            strings.append(last + text)
        } else {
            strings.append(text)
        }
    }

    /// Whether code before this place makes the string that begins here a command.
    private var isShownCommand: Bool {
        var end = position
        while end > 0, text[end - 1] <= 0x20 { end -= 1 }
        return ["ShownCommand(", "shown:", ": ShownCommand ="].contains { mark in
            end >= mark.utf8.count && text[(end - mark.utf8.count)..<end].elementsEqual(mark.utf8)
        }
    }

    /// Whether something that is no string is joined to the one that ended here.
    private var isContinuedByValue: Bool {
        let after = text[position...].drop { $0 <= 0x20 }
        guard after.first == UInt8(ascii: "+") else { return false }
        return after.dropFirst().first { $0 > 0x20 } != UInt8(ascii: "\"")
    }

    private mutating func addLiteral(_ bytes: [UInt8], _ isShownCommand: Bool, at start: Int) {
        let text = String(decoding: bytes, as: UTF8.self)
        let between = end.map { kept[min($0, start)..<start].filter { $0 > 0x20 } }
        if between == [UInt8(ascii: "+")], let continued {
            literals[continued].text += text
        } else {
            literals.append(.init(text: text, isShownCommand: isShownCommand))
            continued = literals.count - 1
        }
    }

    private mutating func string(hashes: Int, isLong: Bool) {
        let quotes = isLong ? 3 : 1
        let start = kept.count
        let isShownCommand = isShownCommand
        var bytes: [UInt8] = []
        var shown: [UInt8] = []
        defer {
            addLiteral(shown + (isContinuedByValue ? Array("\\(+".utf8) : []), isShownCommand, at: start)
            add(bytes, at: start)
            end = kept.count
        }
        position += hashes + quotes
        keep(UInt8(ascii: "\""))
        while position < text.count {
            if text[position] == UInt8(ascii: "\\"), has(hashes: hashes, at: 1) {
                position += 1 + hashes
                if sees("(") {
                    position += 1
                    shown += Array((sees("shown:") ? "\\(shown:" : "\\(").utf8)
                    let before = (strings, end, continued)
                    (end, continued) = (nil, nil)
                    code(until: UInt8(ascii: ")"), isKept: false)
                    (strings, end, continued) = before
                } else {
                    bytes.append(text[position])
                    shown.append(text[position])
                    keep(text[position], isKept: false)
                    position += 1
                }
            } else if isLong ? sees("\"\"\"") : sees("\""), has(hashes: hashes, at: quotes) {
                position += quotes + hashes
                break
            } else {
                // A line of a string is a line of code.
                bytes.append(text[position])
                shown.append(text[position])
                let isFirst = kept.last == 0x0A && text[position] > 0x20
                keep(isFirst ? UInt8(ascii: "\"") : text[position], isKept: isFirst)
                position += 1
            }
        }
        keep(UInt8(ascii: "\""))
    }

    private func has(hashes: Int, at offset: Int) -> Bool {
        (0..<hashes).allSatisfy { sees("#", at: offset + $0) }
    }
}
