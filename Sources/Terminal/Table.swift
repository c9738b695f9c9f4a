/// A table of aligned columns. The cells are sanitized.
public struct Table: Sendable {
    private var rows: [[String]]

    public init(columns: [String]) { rows = [columns] }

    public mutating func add(_ cells: [String]) { rows.append(cells.map { Sanitizer.line($0) }) }

    /// The lines, beginning with the column names, without trailing spaces.
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
