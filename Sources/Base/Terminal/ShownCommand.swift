/// A command that is shown to be pasted into a POSIX shell. Attack: a server chooses a scope, a name or a URL so that
/// the command runs another one. So a command is this value, and not a string. A test finds strings that look like
/// commands.
///
/// The literal is the command as it would be typed. Each value is one word, or the end of one (`--scopes=\(scopes)`):
/// it is quoted, and characters that are not visible become `?`. The value of an option follows its equals sign, since
/// a word that begins with a dash would be an option itself.
public struct ShownCommand: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringInterpolation {
    fileprivate struct Word: Sendable, Hashable {
        /// As a shell reads it.
        var text: String
        /// A value that begins with a dash and is no option.
        var isDashed = false
    }

    private let words: [Word]
    /// In Unicode scalars: a path.
    private static let limit = 4_096

    /// The user's own words, such as those of a running process. Options among them stay options.
    public init(words: [String]) {
        self.words = words.map { Word(text: ShownCommand.quoted(Sanitizer.line($0, limit: ShownCommand.limit))) }
    }

    /// Of an option only the value is quoted: `--scopes='a b'`.
    private static func quoted(_ word: String) -> String {
        guard word.hasPrefix("--"), let sign = word.firstIndex(of: "="),
            word[..<sign].dropFirst(2).utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-") })
        else { return ShellWord.quotedInSentence(word) }
        let value = word[sign...].dropFirst().split(separator: "=", omittingEmptySubsequences: false)
        return word[...sign] + value.map { ShellWord.quotedInSentence(String($0)) }.joined(separator: "=")
    }

    public init(stringLiteral text: String) {
        words = text.split(separator: " ").map { Word(text: String($0)) }
    }

    public init(stringInterpolation: StringInterpolation) { words = stringInterpolation.words }

    /// Values that begin with a dash follow `--`.
    public var description: String {
        var words = words
        if let first = words.firstIndex(where: \.isDashed), !words.contains(where: { $0.text == "--" }) {
            let after = words[first...]
            words =
                words[..<first] + after.filter { $0.text.hasPrefix("-") } + [Word(text: "--")]
                + after.filter { !$0.text.hasPrefix("-") }
        }
        return words.map(\.text).joined(separator: " ")
    }

    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var words: [Word] = []
        /// What follows belongs to the last word.
        private var isInWord = false

        public init(literalCapacity: Int, interpolationCount: Int) {}

        public mutating func appendLiteral(_ literal: String) {
            for (index, part) in literal.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
                if index > 0 { isInWord = false }
                if !part.isEmpty { append(Word(text: String(part))) }
            }
        }

        public mutating func appendInterpolation(_ value: String) {
            let value = Sanitizer.line(value, limit: ShownCommand.limit)
            let isDashed = value.hasPrefix("-")
            let text = isDashed ? ShellWord.inQuotes(value) : ShellWord.quotedInSentence(value)
            append(Word(text: text, isDashed: isDashed))
        }

        public mutating func appendInterpolation(_ value: some BinaryInteger) { appendInterpolation("\(value)") }

        /// The words of another command, such as options.
        public mutating func appendInterpolation(_ command: ShownCommand) {
            words += command.words
            isInWord = false
        }

        private mutating func append(_ word: Word) {
            if isInWord, let last = words.indices.last {
                words[last].text += word.text
            } else {
                words.append(word)
            }
            isInWord = true
        }
    }
}

extension DefaultStringInterpolation {
    public mutating func appendInterpolation(shown command: ShownCommand) { appendLiteral(command.description) }
}
