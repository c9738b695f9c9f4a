import Glibc
import RingbackBase
import RingbackClient

/// The user's configuration file. A changed copy is checked by the daemon's own reader and then takes the file's place.
struct ConfigurationFile {
    /// The file as the daemon names it; may be a symbolic link, or missing.
    let path: String
    private let stated: String?

    init(stated: String?) throws(RingbackError) {
        self.stated = stated
        let named = try AccountFile(name: "", configuration: stated).configuration
        guard let whole = Path.absolute(named) else { throw Files.failure("find", named) }
        path = whole
    }

    func text() throws(RingbackError) -> [UInt8]? { try Files.contents(of: path) }

    func report() throws(RingbackError) -> JSON {
        // A named file that is missing would be a mistake.
        guard unsafe access(path, F_OK) == 0 else { return [:] }
        return try ConfigurationCheck.run(config: stated)
    }

    func replace(with text: [UInt8], if isMeant: (JSON) -> Bool) throws(RingbackError) {
        let exists = unsafe access(path, F_OK) == 0
        let copy = try CandidateFile(following: path)
        if !exists { try Files.makeDirectories(Files.folder(of: path), mode: 0o700) }
        try copy.write(text)
        defer { copy.discard() }
        let report = try ConfigurationCheck.run(config: stated, replacing: path, with: copy.path)
        guard isMeant(report) else {
            throw RingbackError(
                .invalidConfiguration, "\(path) cannot be changed by this command. Nothing was changed. Edit it.")
        }
        try copy.keep(replacing: exists)
    }
}

/// The text of a configuration file as lines. A change is to the lines of one key or of one table; all others stay as
/// they are. The form of TOML is not checked here: the daemon reads the changed text before it is kept.
struct ConfigurationLines {
    /// Without the line feed, with the carriage return where there is one. The last one is empty if the text ends with
    /// a line feed.
    private var lines: [[UInt8]]

    init(_ text: [UInt8]) {
        lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
    }

    var text: [UInt8] { Array(lines.joined(separator: [UInt8(ascii: "\n")])) }

    mutating func append(table: String) {
        let end = lineEnd
        if lines != [[]] {
            if let last = lines.popLast(), !last.isEmpty { lines.append(last + end) }
            lines.append(end)
        } else {
            lines = []
        }
        lines += table.split(separator: "\n").map { Array($0.utf8) + end } + [[]]
    }

    /// Removes the table whose header is in a line, counted from 1; false if this header is not there. Comments before
    /// the next table stay.
    mutating func removeTable(_ header: String, atLine number: Int) -> Bool {
        guard hasHeader(header, atLine: number) else { return false }
        var end = lines[number...].firstIndex { Self.isHeader($0) } ?? lines.count
        while end > number, Self.isEmptyOrComment(lines[end - 1]) { end -= 1 }
        remove(number - 1..<end)
        if let last = lines.last, !last.isEmpty { lines.append([]) }
        return true
    }

    /// Sets a key of the table whose header is in a line, counted from 1, in its own line or else after the table's
    /// last key; false if this header is not there.
    mutating func set(_ key: String, to value: String, inTable header: String, atLine number: Int) -> Bool {
        guard hasHeader(header, atLine: number) else { return false }
        let end = lines[number...].firstIndex { Self.isHeader($0) } ?? lines.count
        let statement = Array("\(key) = \(value)".utf8) + lineEnd
        if let index = lines[number..<end].firstIndex(where: { Self.value(of: key, in: $0) != nil }) {
            lines[index] = statement
        } else {
            let last = lines[number - 1..<end].lastIndex { !Self.isEmptyOrComment($0) } ?? number - 1
            if last == lines.count - 1 { lines.append([]) }
            lines.insert(statement, at: last + 1)
        }
        return true
    }

    private func hasHeader(_ header: String, atLine number: Int) -> Bool {
        lines.indices.contains(number - 1)
            && lines[number - 1].filter({ !Self.isBlank($0) }).starts(with: header.utf8)
    }

    mutating func setDefault(_ name: String) {
        let statement = Array("default = \(AccountText.quoted(name))".utf8)
        // A key without a table is before the first table.
        if let index = lines.prefix(while: { !Self.isHeader($0) }).firstIndex(where: { Self.defaultValue($0) != nil }) {
            lines[index] = statement + Self.afterValue(lines[index])
            return
        }
        // A comment at the head of the file stays there.
        let comments = lines.prefix { Self.trimmed($0).first == UInt8(ascii: "#") }.count
        let isHead = comments > 0 && comments < lines.count && Self.trimmed(lines[comments]).isEmpty
        let place = isHead ? comments + 1 : 0
        let isFollowed = place < lines.count && !Self.trimmed(lines[place]).isEmpty
        lines.insert(contentsOf: [statement + lineEnd] + (isFollowed ? [lineEnd] : []), at: place)
        if lines.count == 1 { lines.append([]) }
    }

    /// What ends the lines of this file besides the line feed.
    private var lineEnd: [UInt8] { lines.first?.last == Self.carriageReturn ? [Self.carriageReturn] : [] }

    /// Also removes one of the two blank lines around them.
    private mutating func remove(_ range: Range<Int>) {
        lines.removeSubrange(range)
        let place = range.lowerBound
        let isBlankBefore = place == 0 || Self.trimmed(lines[place - 1]).isEmpty
        if place < lines.count {
            guard isBlankBefore, Self.trimmed(lines[place]).isEmpty else { return }
            // The last line is what follows the last line feed.
            lines.remove(at: place > 0 && place == lines.count - 1 ? place - 1 : place)
        } else if place > 0, isBlankBefore {
            lines.remove(at: place - 1)
        }
    }

    private static let carriageReturn = UInt8(ascii: "\r")
    private static let quotes = Array("\"'".utf8)

    private static func isHeader(_ line: [UInt8]) -> Bool { trimmed(line).first == UInt8(ascii: "[") }

    private static func isEmptyOrComment(_ line: [UInt8]) -> Bool {
        let first = trimmed(line).first
        return first == nil || first == UInt8(ascii: "#")
    }

    private static func defaultValue(_ line: [UInt8]) -> ArraySlice<UInt8>? { value(of: "default", in: line) }

    /// What follows `KEY =`, without blanks, as a slice of the line; nil for any other line.
    private static func value(of key: String, in line: [UInt8]) -> ArraySlice<UInt8>? {
        let line = trimmed(line)
        for name in [key, "\"\(key)\"", "'\(key)'"] where line.starts(with: name.utf8) {
            let rest = line.dropFirst(name.utf8.count).drop(while: isBlank)
            guard rest.first == UInt8(ascii: "=") else { continue }
            return rest.dropFirst().drop(while: isBlank)
        }
        return nil
    }

    /// What follows the value in its line: a comment, the end of the line.
    private static func afterValue(_ line: [UInt8]) -> ArraySlice<UInt8> {
        guard let value = defaultValue(line), let quote = value.first, quotes.contains(quote) else { return [] }
        return value.dropFirst().drop { $0 != quote }.dropFirst()
    }

    private static func trimmed(_ line: [UInt8]) -> ArraySlice<UInt8> {
        line.drop { isBlank($0) || $0 == carriageReturn }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
