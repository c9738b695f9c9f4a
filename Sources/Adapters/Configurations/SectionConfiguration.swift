/// A configuration of sections, each a header in brackets with lines below it: cargo's `config.toml`, AWS's `config`.
///
/// A change adds or removes whole lines, or is inside of a value. Everything else stays as it is.
public struct SectionConfiguration: Sendable, Equatable {
    public internal(set) var bytes: [UInt8]

    /// - Parameter bytes: the file's; nil if there is no file.
    /// - Returns: nil for what is not UTF-8, and for values of several lines, whose lines could be taken for headers.
    public init?(reading bytes: [UInt8]?) {
        self.bytes = bytes ?? []
        guard let text = String(validating: self.bytes, as: UTF8.self), !text.contains("\"\"\""),
            !text.contains("'''")
        else { return nil }
    }

    private struct Line {
        /// Without the blanks around it.
        let text: String
        /// With its end.
        let range: Range<Int>
    }

    /// True if the file has the section.
    public func has(_ section: String) -> Bool { header(of: section) != nil }

    /// The names of the sections, in the file's order.
    public var sections: [String] { lines.compactMap { Self.section(of: $0.text) } }

    /// True if a line before the first section says something of this key, or of one below it.
    public func isDotted(_ key: String) -> Bool {
        lines.prefix { !$0.text.hasPrefix("[") }.contains { line in
            let words = line.text.filter { !" \t\"'".contains($0) }
            return words.hasPrefix(key + ".") || words.hasPrefix(key + "=")
        }
    }

    /// The value of a key, to the end of its line; nil without it.
    public func value(of key: String, in section: String) -> String? {
        line(of: key, in: section).map { Self.trimmed($0.text[$0.text.index(after: $0.sign)...]) }
    }

    /// Where the value of a key begins, in bytes; nil without it.
    func start(of key: String, in section: String) -> Int? {
        guard let line = line(of: key, in: section), let sign = bytes[line.range].firstIndex(of: UInt8(ascii: "="))
        else { return nil }
        return bytes[sign...].dropFirst().firstIndex { !Self.isBlank($0) }
    }

    /// True if a line is in a section, as it was added.
    public func has(_ line: String, in section: String) -> Bool { body(of: section).contains { $0.text == line } }

    /// Adds a line below the header of a section, or at the end with a new section.
    public mutating func add(_ line: String, to section: String) {
        let end = hasCarriageReturns ? "\r\n" : "\n"
        if let header = header(of: section) {
            let place = header.range.upperBound
            let isEnded = bytes[header.range].last == UInt8(ascii: "\n")
            bytes.insert(contentsOf: Array((isEnded ? line + end : end + line).utf8), at: place)
            return
        }
        let block = "[\(section)]\(end)\(line)"
        guard let last = bytes.last else {
            bytes = Array((block + end).utf8)
            return
        }
        // The last line has an end afterwards if it had one before, so that removing the section restores the file.
        bytes += Array((last == UInt8(ascii: "\n") ? end + block + end : end + end + block).utf8)
    }

    /// Removes a line that ``add(_:to:)`` added.
    ///
    /// - Parameter isSectionOurs: the section was added with it. It is removed too, unless something else is in it now.
    public mutating func remove(_ line: String, from section: String, isSectionOurs: Bool) {
        guard let header = header(of: section), let found = body(of: section).last(where: { $0.text == line }) else {
            return
        }
        let isAlone = body(of: section).allSatisfy { $0.text.isEmpty || $0.range == found.range }
        var range = isSectionOurs && isAlone ? header.range.lowerBound..<found.range.upperBound : found.range
        if isSectionOurs, isAlone, let before = lines.last(where: { $0.range.upperBound == range.lowerBound }),
            before.text.isEmpty
        {
            range = before.range.lowerBound..<range.upperBound
        }
        // Without an end of its own, the line goes with the end of the one before.
        if range.upperBound == bytes.count, bytes.last != UInt8(ascii: "\n"), range.lowerBound > 0 {
            let hasReturn = range.lowerBound > 1 && bytes[range.lowerBound - 2] == UInt8(ascii: "\r")
            range = range.lowerBound - (hasReturn ? 2 : 1)..<range.upperBound
        }
        bytes.removeSubrange(range)
    }

    // MARK: Lines

    private func header(of section: String) -> Line? { lines.first { Self.section(of: $0.text) == section } }

    /// The lines of a section, without its header.
    private func body(of section: String) -> ArraySlice<Line> {
        let lines = lines
        guard let start = lines.firstIndex(where: { Self.section(of: $0.text) == section }) else { return [] }
        return lines[(start + 1)...].prefix { !$0.text.hasPrefix("[") }
    }

    private func line(of key: String, in section: String) -> (text: String, sign: String.Index, range: Range<Int>)? {
        for line in body(of: section) {
            guard let sign = line.text.firstIndex(of: "=") else { continue }
            let name = Self.trimmed(line.text[..<sign])
            if name == key || name == "\"\(key)\"" || name == "'\(key)'" { return (line.text, sign, line.range) }
        }
        return nil
    }

    /// The name of a header, with single blanks; nil for another line.
    private static func section(of line: String) -> String? {
        guard line.hasPrefix("["), let end = line.firstIndex(of: "]") else { return nil }
        return line[..<end].dropFirst().split { $0 == " " || $0 == "\t" }.joined(separator: " ")
    }

    private var hasCarriageReturns: Bool {
        bytes.firstIndex(of: UInt8(ascii: "\n")).map { $0 > 0 && bytes[$0 - 1] == UInt8(ascii: "\r") } ?? false
    }

    private var lines: [Line] {
        var found: [Line] = []
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
            var line = bytes[start..<end].drop(while: Self.isBlank)
            while let last = line.last, Self.isBlank(last) { line.removeLast() }
            found.append(Line(text: String(decoding: line, as: UTF8.self), range: start..<end))
            start = end
        }
        return found
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }

    private static func trimmed(_ text: Substring) -> String {
        let bytes = text.utf8.drop(while: isBlank)
        guard let last = bytes.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(bytes[...last]))
    }
}
