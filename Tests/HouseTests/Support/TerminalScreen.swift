/// A model of a terminal's screen (xterm's, as far as our programs use it): what a person sees after the bytes, and how
/// many lines have scrolled away.
struct TerminalScreen {
    let columns: Int
    let rows: Int
    private var grid: [[Character]]
    private var row = 0
    private var column = 0
    /// Lines that have left the screen at its top.
    private(set) var scrolledAway: [String] = []
    /// Sequences that this model does not know; a test that meets one must teach it.
    private(set) var unknown: [String] = []

    init(_ text: String, columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
        grid = Array(repeating: [], count: rows)
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\u{1B}": control(&rest)
            case "\r": column = 0
            case "\n": lineFeed()
            default: put(Character(scalar))
            }
        }
    }

    /// The visible lines, without spaces at their ends; empty ones at the end of the screen are left out.
    var lines: [String] {
        let all = grid.map { TerminalScreen.text($0) }
        return Array(all[..<(all.lastIndex { !$0.isEmpty }.map { $0 + 1 } ?? 0)])
    }

    private static func text(_ cells: [Character]) -> String {
        String(cells.reversed().drop { $0 == " " }.reversed())
    }

    private mutating func lineFeed() {
        if row == rows - 1 {
            scrolledAway.append(TerminalScreen.text(grid.removeFirst()))
            grid.append([])
        } else {
            row += 1
        }
    }

    private mutating func put(_ character: Character) {
        // A full line wraps when the next character comes, not before.
        if column == columns {
            column = 0
            lineFeed()
        }
        while grid[row].count <= column { grid[row].append(" ") }
        grid[row][column] = character
        column += 1
    }

    /// ECMA-48 control sequences: `ESC [`, parameters, a final byte.
    private mutating func control(_ rest: inout Substring.UnicodeScalarView) {
        guard rest.first == "[" else { return unknown.append("ESC " + (rest.first.map { String($0) } ?? "")) }
        rest.removeFirst()
        var parameters = ""
        while let scalar = rest.popFirst() {
            guard scalar.value >= 0x40 else {
                parameters.unicodeScalars.append(scalar)
                continue
            }
            switch (scalar, parameters) {
            case ("K", ""), ("K", "0"): grid[row] = Array(grid[row].prefix(column))
            // Colours take no room.
            case ("m", _): break
            default: unknown.append("ESC [ \(parameters)\(scalar)")
            }
            return
        }
    }
}
