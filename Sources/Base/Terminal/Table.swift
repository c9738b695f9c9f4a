/// A table of aligned columns. The cells are sanitized.
public struct Table: Sendable {
    private var rows: [[String]]

    public init(columns: [String]) { rows = [columns] }

    public mutating func add(_ cells: [String]) { rows.append(cells.map { Sanitizer.line($0) }) }

    /// The lines, beginning with the column names, without trailing spaces. If they are too wide, the last cells of each
    /// row are on lines of their own below it, indented and broken between words.
    ///
    /// - Parameters:
    ///   - columns: of the terminal; nil if the output is none.
    ///   - count: how many of the last cells are put below.
    public func lines(columns: Int?, below count: Int) -> [String] {
        guard let columns, count > 0, lines.contains(where: { TextWidth.of($0) > columns }) else { return lines }
        var upper = self
        upper.rows = rows.map { Array($0.dropLast(count)) }
        let indent = "    "
        return zip(upper.lines, rows).flatMap { line, row in
            let rest = row.suffix(count).filter { !$0.isEmpty }.joined(separator: "  ")
            guard !rest.isEmpty else { return [line] }
            let broken = TextWrap.wrapped(rest, columns: columns - indent.count).split(separator: "\n")
            return [line] + broken.map { indent + $0 }
        }
    }

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
