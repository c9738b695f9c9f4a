/// A `.desktop` file as it is read (Desktop Entry Specification 1.5): the keys of its first group, and which program its
/// `Exec` starts. Lenient: what desktops start is what counts, not what a validator would say.
public struct DesktopFile: Sendable {
    private let values: [String: String]

    /// Reads the group `[Desktop Entry]`; without one, there are no keys.
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

    /// A key's value as it is written.
    public subscript(key: String) -> String? { values[key] }

    /// What `Exec` starts, field codes as they are; nil where it is missing or its quotes do not end.
    public var arguments: [String]? { values["Exec"].flatMap { DesktopFile.arguments(of: DesktopFile.unescaped($0)) } }

    /// The schemes that the file says it is for.
    public var schemes: [String] {
        (values["MimeType"] ?? "").split(separator: ";").compactMap { type in
            type.hasPrefix(DesktopFile.typePrefix) ? String(type.dropFirst(DesktopFile.typePrefix.count)) : nil
        }
    }

    /// What the type of a scheme's links begins with.
    static let typePrefix = "x-scheme-handler/"

    /// By bytes: to a string, a carriage return and a line feed are one character.
    static func lines(of text: String) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    // Scalar by scalar: to a string, a quote with an accent behind it would be another character, and to a desktop it is
    // a quote.

    /// `\s`, `\n`, `\t`, `\r` and `\\`, which any value may have.
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

    /// Words between spaces; inside of double quotes a backslash makes the next character plain.
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
