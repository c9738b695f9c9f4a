/// The width of text on a terminal, in columns. Terminals differ in rare characters; these are the usual widths.
public enum TextWidth {
    /// The width of one line of text in columns.
    public static func of(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + of($1) } }

    /// The text, cut and ended with `…` if it is wider than `columns`.
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

    /// The number of rows that the text takes on a terminal with that many columns; the text may have several lines.
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
