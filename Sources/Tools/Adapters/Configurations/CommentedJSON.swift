import RingbackBase

/// Where the comments of a JSON text are, as the settings of editors have them: `//` to the end of the line, `/* */`,
/// and a comma after the last member.
struct CommentedJSON {
    /// As long as the text, with spaces in the place of comments. Lines end where they ended.
    private(set) var code: [UInt8]
    /// The same, with spaces in the place of commas after a last member or element: JSON, if the text is.
    private(set) var plain: [UInt8]
    private(set) var comments: [Range<Int>] = []

    init(_ bytes: [UInt8]) {
        code = bytes
        var (index, isInString) = (0, false)
        while index < bytes.count {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            switch bytes[index] {
            case UInt8(ascii: "\\") where isInString: index += 1
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "/") where !isInString && next == UInt8(ascii: "/"):
                var end = index
                while end < bytes.count, bytes[end] != 0x0A, bytes[end] != 0x0D { end += 1 }
                comments.append(index..<end)
                index = end - 1
            case UInt8(ascii: "/") where !isInString && next == UInt8(ascii: "*"):
                var end = index + 2
                while end < bytes.count,
                    !(bytes[end] == UInt8(ascii: "/") && bytes[end - 1] == UInt8(ascii: "*") && end > index + 2)
                {
                    end += 1
                }
                // One that does not end is left, so that the text is not taken for JSON.
                if end < bytes.count { comments.append(index..<end + 1) }
                index = end
            default: break
            }
            index += 1
        }
        for comment in comments {
            for place in comment where code[place] != 0x0A && code[place] != 0x0D { code[place] = 0x20 }
        }
        plain = code
        // A comma is one after a last member only if a value is before it.
        var comma: Int?
        var before: UInt8 = 0
        isInString = false
        index = 0
        while index < code.count {
            let byte = code[index]
            switch byte {
            case UInt8(ascii: "\\") where isInString: index += 1
            case UInt8(ascii: "\""):
                isInString.toggle()
                comma = nil
            case _ where isInString || CommentedJSON.isSpace(byte): break
            case UInt8(ascii: ","): comma = "{[:,".utf8.contains(before) ? nil : index
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if let comma { plain[comma] = 0x20 }
                comma = nil
            default: comma = nil
            }
            if !CommentedJSON.isSpace(byte) { before = byte }
            index += 1
        }
    }

    /// The end of the comments that begin on the line of a place, with nothing but spaces before them.
    func endOfComments(after place: Int) -> Int {
        var end = place
        while true {
            var next = end
            while next < code.count, code[next] == 0x20 || code[next] == 0x09,
                !comments.contains(where: { $0.lowerBound == next })
            {
                next += 1
            }
            guard let comment = comments.first(where: { $0.lowerBound == next }) else { return end }
            end = comment.upperBound
        }
    }

    /// The place of the first byte from a place on that is neither space nor comment; nil at the end.
    func next(from place: Int) -> Int? { code.indices[place...].first { !CommentedJSON.isSpace(code[$0]) } }

    /// The place of the last byte before a place that is neither space nor comment; nil at the start.
    func last(before place: Int) -> Int? { code.indices[..<place].last { !CommentedJSON.isSpace(code[$0]) } }
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
}
