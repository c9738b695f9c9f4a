/// Breaks lines that are wider than the terminal between words, where the terminal would break them anywhere.
public enum TextWrap {
    /// The text with every line that is wider than `columns` broken. A line that begins with a blank, and one with escape
    /// sequences, stays as it is. A command to type (`Run: ringback login work`) is not broken, so that it can be copied
    /// whole; neither is what stands in brackets in a line of usage.
    ///
    /// - Parameters:
    ///   - columns: of the terminal; nil if the output is none.
    ///   - indent: blanks before each further line. A line of usage has its own.
    public static func wrapped(_ text: String, columns: Int?, indent: Int = 0) -> String {
        guard let columns, columns >= narrowest else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { wrapped(line: String($0), columns, indent) }.joined(separator: "\n")
    }

    /// The text of `--help` with its lines of usage broken. Everything else of it stays as it is.
    public static func wrappedUsage(_ text: String, columns: Int?) -> String {
        guard let columns, columns >= narrowest else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { isUsage($0) ? wrapped(line: String($0), columns, 0) : String($0) }.joined(separator: "\n")
    }

    /// Nothing is broken for a narrower terminal.
    private static let narrowest = 20
    private static let usage = "usage: "
    /// What the commands that are printed begin with.
    private static let programs: Set = ["ringback", "ringbackd", "systemctl", "loginctl", "ssh", "chmod", "sudo"]

    private static func isUsage(_ line: some StringProtocol) -> Bool { line.lowercased().hasPrefix(usage) }

    private static func wrapped(line: String, _ columns: Int, _ indent: Int) -> String {
        guard TextWidth.of(line) > columns, !line.hasPrefix(" "), !line.contains("\u{1B}") else { return line }
        let isUsage = isUsage(line)
        let margin = String(repeating: " ", count: isUsage ? usage.count : indent)
        var done: [String] = []
        var current = ""
        var blanks = ""
        for unit in isUsage ? usageUnits(line) : sentenceUnits(line) {
            // Several blanks between two words are empty units.
            guard !unit.isEmpty else {
                blanks += " "
                continue
            }
            if TextWidth.of(current + blanks + unit) > columns, current.contains(where: { $0 != " " }) {
                done.append(current)
                current = margin + unit
            } else {
                current += blanks + unit
            }
            blanks = " "
        }
        return (done + [current]).joined(separator: "\n")
    }

    private static func usageUnits(_ line: String) -> [String] {
        var units: [String] = []
        var depth = 0
        for word in words(line) {
            if depth > 0, let last = units.popLast() { units.append("\(last) \(word)") } else { units.append(word) }
            depth += word.count { $0 == "[" } - word.count { $0 == "]" }
        }
        return units
    }

    private static func sentenceUnits(_ line: String) -> [String] {
        var units: [String] = []
        var isCommand = false
        for word in words(line) {
            if isCommand, word.hasPrefix("(") { isCommand = false }
            if isCommand, let last = units.popLast() {
                units.append("\(last) \(word)")
            } else {
                isCommand = units.last?.hasSuffix(":") == true && programs.contains(word)
                units.append(word)
            }
            if let end = word.last, ";,.)".contains(end) { isCommand = false }
        }
        return units
    }

    private static func words(_ line: String) -> [String] {
        line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    }
}
