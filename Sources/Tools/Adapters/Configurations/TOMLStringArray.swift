/// An array of strings as it is written in TOML, on one line or several, with comments. It is read to add or to remove
/// one string; all else stays as it is.
public struct TOMLStringArray: Sendable {
    private struct Element: Sendable {
        let range: Range<Int>
        /// Without the quotes; nil for a string with escapes.
        let text: String?
        /// Where the comma behind it is.
        var comma: Int?
    }

    private let bytes: [UInt8]
    private let start: Int
    private var elements: [Element] = []

    /// - Parameter start: where the value begins, with `[`.
    /// - Returns: nil if it is no array of strings.
    public init?(in bytes: [UInt8], from start: Int) {
        self.bytes = bytes
        self.start = start
        guard bytes.indices.contains(start), bytes[start] == UInt8(ascii: "[") else { return nil }
        var place = start + 1
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "]"): return
            case UInt8(ascii: ","):
                guard let last = elements.indices.last, elements[last].comma == nil else { return nil }
                elements[last].comma = place
            case UInt8(ascii: "#"):
                while place + 1 < bytes.count, bytes[place + 1] != UInt8(ascii: "\n") { place += 1 }
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                guard elements.last.map({ $0.comma != nil }) ?? true, let end = Self.end(of: place, in: bytes) else {
                    return nil
                }
                let content = bytes[place + 1..<end]
                let isPlain = !content.contains(UInt8(ascii: "\\"))
                elements.append(
                    Element(range: place..<end + 1, text: isPlain ? String(decoding: content, as: UTF8.self) : nil))
                place = end
            case _ where Self.isSpace(bytes[place]): break
            default: return nil
            }
            place += 1
        }
        return nil
    }

    /// The strings; nil in the place of one with escapes.
    public var texts: [String?] { elements.map(\.text) }

    /// The bytes with one more string at the end of the array. It has no quotes, backslashes and control characters.
    public func adding(_ text: String) -> [UInt8] {
        let place = elements.last?.range.upperBound ?? start + 1
        return Array(bytes[..<place]) + Array("\(elements.isEmpty ? "" : ", ")\"\(text)\"".utf8) + bytes[place...]
    }

    /// The bytes without the string, its comma, and the line that only it was in; nil if the array does not have it.
    public func removing(_ text: String) -> [UInt8]? {
        guard let index = elements.lastIndex(where: { $0.text == text }) else { return nil }
        var range = elements[index].range
        // As it was added: what follows it follows the one before again.
        if index > 0, bytes[elements[index - 1].range.upperBound..<range.lowerBound].elementsEqual(", ".utf8) {
            return Array(bytes[..<elements[index - 1].range.upperBound]) + bytes[range.upperBound...]
        }
        if let comma = elements[index].comma {
            // Nothing but spaces may be between the two: a comment stays.
            guard bytes[range.upperBound..<comma].allSatisfy(Self.isSpace) else { return nil }
            range = range.lowerBound..<comma + 1
        } else if index > 0, let comma = elements[index - 1].comma,
            bytes[comma + 1..<range.lowerBound].allSatisfy(Self.isSpace)
        {
            range = comma..<range.upperBound
        }
        let removed = withSpaces(range)
        return Array(bytes[..<removed.lowerBound]) + bytes[removed.upperBound...]
    }

    /// The range with the blanks behind it, or its whole line if nothing else is there.
    private func withSpaces(_ range: Range<Int>) -> Range<Int> {
        var end = range.upperBound
        while end < bytes.count, Self.isBlank(bytes[end]) { end += 1 }
        if end < bytes.count, bytes[end] == UInt8(ascii: "\r") { end += 1 }
        guard end < bytes.count, bytes[end] == UInt8(ascii: "\n") else {
            // Before a comment, and at the end of the array, the blanks stay.
            let isKept = end < bytes.count && "#]".utf8.contains(bytes[end])
            return range.lowerBound..<(isKept ? range.upperBound : end)
        }
        var start = range.lowerBound
        while start > 0, Self.isBlank(bytes[start - 1]) { start -= 1 }
        // A range that begins with the comma of the line before ends where that line did.
        guard bytes[range.lowerBound] != UInt8(ascii: ","), start > 0, bytes[start - 1] == UInt8(ascii: "\n") else {
            return range
        }
        return start..<end + 1
    }

    /// Where the closing quote is; nil for none in the line.
    private static func end(of start: Int, in bytes: [UInt8]) -> Int? {
        let quote = bytes[start]
        var place = start + 1
        while place < bytes.count, bytes[place] != quote, bytes[place] != UInt8(ascii: "\n") {
            place += quote == UInt8(ascii: "\"") && bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        return place < bytes.count && bytes[place] == quote ? place : nil
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private static func isSpace(_ byte: UInt8) -> Bool {
        isBlank(byte) || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
    }
}
