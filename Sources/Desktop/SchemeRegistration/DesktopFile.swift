/// A parsed `.desktop` file (Desktop Entry Specification 1.5): the keys of its first group, and the program that its
/// `Exec` starts. The parser is lenient, as desktops are.
public struct DesktopFile: Sendable {
    private let values: [String: String]

    /// Reads the group `[Desktop Entry]`. Without it there are no keys.
    public init(reading text: String) {
        var values: [String: String] = [:]
        var isEntry = false
        for line in DesktopFile.lines(of: text) {
            if line.hasPrefix("[") {
                isEntry = DesktopFile.trimmed(line) == "[Desktop Entry]"
            } else if isEntry, !line.hasPrefix("#"), let equals = line.firstIndex(of: "=") {
                let key = String(DesktopFile.trimmed(line[..<equals]))
                if values[key] == nil { values[key] = String(DesktopFile.trimmed(line[line.index(after: equals)...])) }
            }
        }
        self.values = values
    }

    /// A key's value as written.
    public subscript(key: String) -> String? { values[key] }

    /// The words of `Exec`, with field codes unchanged; nil if it is missing or a quote is not closed.
    public var arguments: [String]? { values["Exec"].flatMap { DesktopFile.arguments(of: DesktopFile.unescaped($0)) } }

    /// The schemes that the file declares to handle.
    public var schemes: [String] {
        (values["MimeType"] ?? "").split(separator: ";").compactMap { type in
            type.hasPrefix(DesktopFile.typePrefix) ? String(type.dropFirst(DesktopFile.typePrefix.count)) : nil
        }
    }

    /// The prefix of the MIME type for a scheme's links.
    static let typePrefix = "x-scheme-handler/"

    /// Splits bytes, because Swift treats a carriage return and a line feed as one character.
    static func lines(of text: String) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    // The functions below go through Unicode scalars: Swift treats a quote and a combining accent as one character, but
    // for a desktop it is a quote.

    /// Replaces the escapes `\s`, `\n`, `\t`, `\r` and `\\`, which are allowed in every value.
    private static func unescaped(_ value: String) -> String.UnicodeScalarView {
        var text = String.UnicodeScalarView()
        var rest = value.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "\\", let next = rest.popFirst() else {
                text.append(scalar)
                continue
            }
            switch next {
            case "s": text.append(" ")
            case "n": text.append("\n")
            case "t": text.append("\t")
            case "r": text.append("\r")
            case "\\": text.append("\\")
            default: text.append(contentsOf: [scalar, next])
            }
        }
        return text
    }

    /// Splits at spaces. Inside double quotes a backslash makes the next character literal.
    private static func arguments(of text: String.UnicodeScalarView) -> [String]? {
        var words: [String] = []
        var word: String.UnicodeScalarView?
        var isQuoted = false
        var rest = text[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\"":
                isQuoted.toggle()
                word = word ?? String.UnicodeScalarView()
            case "\\" where isQuoted:
                guard let next = rest.popFirst() else { return nil }
                word = (word ?? String.UnicodeScalarView()) + [next]
            case " " where !isQuoted, "\t" where !isQuoted:
                if let whole = word { words.append(String(whole)) }
                word = nil
            default: word = (word ?? String.UnicodeScalarView()) + [scalar]
            }
        }
        guard !isQuoted else { return nil }
        if let word { words.append(String(word)) }
        return words.isEmpty ? nil : words
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" || scalar == "\r" }
        let start = text.unicodeScalars.drop(while: isSpace)
        guard let last = start.lastIndex(where: { !isSpace($0) }) else { return "" }
        return Substring(start[...last])
    }
}
