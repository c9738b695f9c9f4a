// The symbol has a border of four light modules. Dark modules must be darker than light ones, whatever colours the
// terminal uses.

extension QRCode {
    /// The width of the quiet zone in modules.
    static let border = 4

    /// The columns that the drawing needs. In a narrower terminal the lines would wrap.
    public var columns: Int { size + 2 * QRCode.border }

    /// The symbol as lines for a terminal. Each character shows two modules, one above the other.
    public func lines(_ ink: Ink) -> [String] {
        stride(from: -QRCode.border, to: size + QRCode.border, by: 2).map { row in
            var line = ink == .blackOnWhite ? "\u{1B}[38;5;16;48;5;231m" : ""
            for column in -QRCode.border..<size + QRCode.border {
                // Block characters are drawn in the foreground colour.
                let isUpper = self[column, row] == (ink != .lightText)
                let isLower = self[column, row + 1] == (ink != .lightText)
                line += isUpper ? (isLower ? "█" : "▀") : (isLower ? "▄" : " ")
            }
            return ink == .blackOnWhite ? line + "\u{1B}[0m" : line
        }
    }

    /// The symbol as an SVG document, black on white, one unit for each module, without line breaks.
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
