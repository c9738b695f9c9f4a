/// Rows in columns, each as wide as its widest cell. Cells are shown sanitized.
public struct Table: Sendable {
    private var rows: [[String]]

    public init(columns: [String]) { rows = [columns] }

    public mutating func add(_ cells: [String]) { rows.append(cells.map { Sanitizer.line($0) }) }

    /// The lines, the columns' names first; no spaces at the ends.
    public var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? Table.width(of: $0[column]) : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                guard row[(column + 1)...].contains(where: { !$0.isEmpty }) else { break }
                line += String(repeating: " ", count: widths[column] - Table.width(of: cell) + 2)
            }
            return line
        }
    }

    /// How many places the text takes on a terminal.
    static func width(of text: String) -> Int {
        text.unicodeScalars.reduce(0) { sum, scalar in
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark: sum
            default: sum + (isWide(scalar.value) ? 2 : 1)
            }
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
