internal import RingbackBase

/// Breaks lines that are wider than the terminal between words, where the terminal would break them anywhere.
public enum TextWrap {
    /// Breaks every line that is wider than `columns`. A line that begins with a blank, and one with escape sequences,
    /// stays as it is. A command to type (`Run: ringback login work`) is not broken, so that it can be copied whole;
    /// neither is what stands in brackets in a line of usage. `columns` is nil if the output is no terminal. `indent`
    /// is the number of blanks before each further line; a line of usage has its own.
    public static func wrapped(_ text: String, columns: Int?, indent: Int = 0) -> String {
        guard let columns, columns >= narrowest else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { wrapped(line: String($0), columns, indent) }.joined(separator: "\n")
    }

    /// The text of `--help` with only its lines of usage broken.
    public static func wrappedUsage(_ text: String, columns: Int?) -> String {
        guard let columns, columns >= narrowest else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { isUsage($0) ? wrapped(line: String($0), columns, 0) : String($0) }.joined(separator: "\n")
    }

    /// Nothing is broken for a narrower terminal.
    private static let narrowest = 20
    private static let usage = "usage: "
    /// What the commands that are printed begin with.
    private static let programs: Set = [
        "ringback", "ringbackd", "systemctl", "loginctl", "ssh", "chmod", "chown", "sudo", "ss", "kill", "export",
        "curl", "flatpak", "timedatectl",
    ]
    /// Before a command of Ringback's that follows no colon.
    private static let conjunctions: Set = ["run", "or", "and", "then"]

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

    /// A command ends at a bracket, and after a punctuation mark that is not in quotes.
    private static func sentenceUnits(_ line: String) -> [String] {
        var units: [String] = []
        var isCommand = false
        var isQuoted = false
        for word in words(line) {
            if isCommand, !isQuoted, word.hasPrefix("(") { isCommand = false }
            if isCommand, let last = units.popLast() {
                units.append("\(last) \(word)")
            } else {
                isCommand = beginsCommand(word, after: units.last)
                units.append(word)
            }
            guard isCommand else { continue }
            isQuoted = ShellWord.isOpen(after: word, quoted: isQuoted)
            if !isQuoted, let end = word.last, ";,.)".contains(end) { isCommand = false }
        }
        return units
    }

    private static func beginsCommand(_ word: String, after last: String?) -> Bool {
        guard let last else { return programs.contains(word) }
        guard last.hasSuffix(":") else {
            return conjunctions.contains(last.lowercased()) && word.hasPrefix("ringback") && programs.contains(word)
        }
        return last.lowercased() == "run:" || programs.contains(word)
    }

    private static func words(_ line: String) -> [String] {
        line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    }
}

/// The width of text on a terminal, in columns. Terminals differ in rare characters; these are the usual widths.
public enum TextWidth {
    /// Of one line.
    public static func of(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + of($1) } }

    /// Ends with `…` if the text is wider than `columns`.
    public static func cut(_ text: String, to columns: Int) -> String {
        guard of(text) > columns else { return text }
        guard columns > 0 else { return "" }
        var kept = String.UnicodeScalarView()
        var left = columns - 1
        for scalar in text.unicodeScalars {
            left -= of(scalar)
            guard left >= 0 else { break }
            kept.append(scalar)
        }
        return String(kept) + "…"
    }

    /// The text may have several lines.
    public static func rows(of text: String, columns: Int) -> Int {
        text.split(separator: "\n", omittingEmptySubsequences: false).reduce(0) { sum, line in
            sum + max(1, (of(String(line)) + columns - 1) / max(1, columns))
        }
    }

    private static func of(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: 0
        default: isWide(scalar.value) ? 2 : 1
        }
    }

    /// East Asian wide and full-width forms and emoji, in the blocks where nearly all of them are (UAX 11).
    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: false
        }
    }
}

/// A table of aligned columns. The cells are sanitized.
public struct Table: Sendable {
    private var rows: [[String]]

    public init(columns: [String]) { rows = [columns] }
    public mutating func add(_ cells: [String]) { rows.append(cells.map { Sanitizer.line($0) }) }

    /// With the column names first, without trailing spaces. If the lines are too wide, the last `count` cells of each
    /// row are on lines of their own below it, indented and broken between words; then the cells of the columns
    /// `shrinking` are cut, in the widest column first, and only if that is not enough those of the next columns.
    public func lines(columns: Int?, below count: Int, shrinking: [[Int]] = []) -> [String] {
        guard let columns, isWider(than: columns) else { return lines }
        var upper = self
        upper.rows = rows.map { Array($0.dropLast(count)) }
        for group in shrinking { upper.shrink(group, to: columns) }
        guard count > 0 else { return upper.lines }
        let indent = "    "
        return zip(upper.lines, rows).flatMap { line, row in
            let rest = row.suffix(count).filter { !$0.isEmpty }.joined(separator: "  ")
            guard !rest.isEmpty else { return [line] }
            let broken = TextWrap.wrapped(rest, columns: columns - indent.count).split(separator: "\n")
            return [line] + broken.map { indent + $0 }
        }
    }

    private func isWider(than columns: Int) -> Bool { lines.contains { TextWidth.of($0) > columns } }

    private mutating func shrink(_ group: [Int], to columns: Int) {
        while isWider(than: columns) {
            let widths = group.map { column in (column, rows.map { TextWidth.of($0[column]) }.max() ?? 0) }
            guard let (column, width) = widths.max(by: { $0.1 < $1.1 }), width > Table.narrowest else { return }
            for row in rows.indices { rows[row][column] = TextWidth.cut(rows[row][column], to: width - 1) }
        }
    }

    /// No cell is cut to fewer columns, so that something can still be recognized.
    private static let narrowest = 9

    /// With the column names first, without trailing spaces.
    public var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? TextWidth.of($0[column]) : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                guard row[(column + 1)...].contains(where: { !$0.isEmpty }) else { break }
                line += String(repeating: " ", count: widths[column] - TextWidth.of(cell) + 2)
            }
            return line
        }
    }
}

/// Makes text from outside safe to show: it could move the cursor, change colours, reorder letters or hide text.
public enum Sanitizer {
    /// In Unicode scalars, so that a long error description does not scroll other lines off the screen.
    public static let maxLength = 200

    /// One line, with a space for each space character and `?` for each other character that is not visible.
    public static func line(_ text: String, limit: Int = maxLength) -> String {
        var output = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            guard count < limit else {
                output.removeLast()
                output.append("…")
                break
            }
            output.append(scalar.isVisible ? scalar : replacement(of: scalar))
            count += 1
        }
        return String(output)
    }

    private static func replacement(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar.properties.generalCategory == .spaceSeparator ? " " : "?"
    }
}

/// Says before a line whether something is in order. One column wide.
public enum Mark: Sendable {
    case good, warning, bad
    /// Neither in order nor wrong.
    case neutral

    /// A symbol or an ASCII character, with colour where the stream has it.
    public func text(on stream: Console.Stream) -> String {
        let (symbol, character, style): (String, String, Style?) =
            switch self {
            case .good: ("✓", "+", .green)
            case .warning: ("!", "!", .yellow)
            case .bad: ("✗", "x", .red)
            case .neutral: ("·", "-", nil)
            }
        let text = stream.hasSymbols ? symbol : character
        return style.map { $0.apply(text, on: stream) } ?? text
    }
}
