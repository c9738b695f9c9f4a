// The rule: four light modules lie around the symbol, and dark is drawn darker than light whatever the terminal's own
// colours are.

extension QRCode {
    /// Light modules on each side.
    static let border = 4

    /// Places on a line that the drawing takes. A narrower terminal would break the lines, and the symbol.
    public var columns: Int { size + 2 * QRCode.border }

    /// The symbol as lines of a terminal, two modules above each other in a place.
    public func lines(_ ink: Ink) -> [String] {
        stride(from: -QRCode.border, to: size + QRCode.border, by: 2).map { row in
            var line = ink == .blackOnWhite ? "\u{1B}[38;5;16;48;5;231m" : ""
            for column in -QRCode.border..<size + QRCode.border {
                // The foreground is what a block is drawn in.
                let isUpper = self[column, row] == (ink != .lightText)
                let isLower = self[column, row + 1] == (ink != .lightText)
                line += isUpper ? (isLower ? "█" : "▀") : (isLower ? "▄" : " ")
            }
            return ink == .blackOnWhite ? line + "\u{1B}[0m" : line
        }
    }

    /// The symbol as an SVG document, one unit a module, black on white; without line ends.
    public var svg: String {
        let side = columns
        var path = ""
        for row in 0..<size {
            var column = 0
            while column < size {
                let start = column
                while self[column, row] { column += 1 }
                if column > start {
                    path += "M\(start + QRCode.border) \(row + QRCode.border)h\(column - start)v1h-\(column - start)z"
                }
                column += 1
            }
        }
        return
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(side) \(side)\" shape-rendering=\"crispEdges\">"
            + "<path fill=\"white\" d=\"M0 0h\(side)v\(side)h-\(side)z\"/><path fill=\"black\" d=\"\(path)\"/></svg>"
    }
}
