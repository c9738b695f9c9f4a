import RingbackClient

/// The line `default = "NAME"` in the text of a configuration file. It stands before the first table. Everything else in
/// the text stays as it is.
enum DefaultKey {
    /// The text with this account as the default.
    static func setting(_ name: String, in text: [UInt8]) -> [UInt8] {
        var lines = split(text)
        let statement = Array("default = \(AccountText.quoted(name))".utf8)
        if let index = index(in: lines) {
            lines[index] = statement + afterValue(lines[index])
            return joined(lines)
        }
        // A comment at the head of the file stays there.
        let comments = lines.prefix { trimmed($0).first == UInt8(ascii: "#") }.count
        let isHead = comments > 0 && comments < lines.count && trimmed(lines[comments]).isEmpty
        let place = isHead ? comments + 1 : 0
        let end = lines.first?.last == carriageReturn ? [carriageReturn] : []
        let isFollowed = place < lines.count && !trimmed(lines[place]).isEmpty
        lines.insert(contentsOf: [statement + end] + (isFollowed ? [end] : []), at: place)
        if lines.count == 1 { lines.append([]) }
        return joined(lines)
    }

    /// The text without the line; nil if there is none.
    static func removing(from text: [UInt8]) -> [UInt8]? {
        var lines = split(text)
        guard let index = index(in: lines) else { return nil }
        lines.remove(at: index)
        // The blank line that separated it.
        let isBlankBefore = index == 0 || trimmed(lines[index - 1]).isEmpty
        if isBlankBefore, index < lines.count, trimmed(lines[index]).isEmpty { lines.remove(at: index) }
        return joined(lines)
    }

    /// The account that the line names; nil without a line, or if its value is no plain string.
    static func value(in text: [UInt8]) -> String? {
        let lines = split(text)
        guard let index = index(in: lines), let value = value(lines[index]), let quote = value.first,
            quotes.contains(quote)
        else { return nil }
        return String(decoding: value.dropFirst().prefix { $0 != quote }, as: UTF8.self)
    }

    private static let carriageReturn = UInt8(ascii: "\r")
    private static let quotes = Array("\"'".utf8)

    private static func index(in lines: [[UInt8]]) -> Int? {
        let head = lines.prefix { trimmed($0).first != UInt8(ascii: "[") }
        return head.firstIndex { value($0) != nil }
    }

    /// What follows `default =`, without blanks; nil for any other line.
    private static func value(_ line: [UInt8]) -> ArraySlice<UInt8>? {
        let line = trimmed(line)
        for name in ["default", "\"default\"", "'default'"] where line.starts(with: name.utf8) {
            let rest = line.dropFirst(name.utf8.count).drop(while: isBlank)
            guard rest.first == UInt8(ascii: "=") else { continue }
            return rest.dropFirst().drop(while: isBlank)
        }
        return nil
    }

    /// What follows the value in its line: a comment, the end of the line.
    private static func afterValue(_ line: [UInt8]) -> ArraySlice<UInt8> {
        guard let value = value(line), let quote = value.first, quotes.contains(quote) else { return [] }
        return value.dropFirst().drop { $0 != quote }.dropFirst()
    }

    private static func split(_ text: [UInt8]) -> [[UInt8]] {
        text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
    }

    private static func joined(_ lines: [[UInt8]]) -> [UInt8] { Array(lines.joined(separator: [UInt8(ascii: "\n")])) }

    private static func trimmed(_ line: [UInt8]) -> ArraySlice<UInt8> {
        line.drop { isBlank($0) || $0 == carriageReturn }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
