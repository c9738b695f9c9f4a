import Testing

@testable import Terminal

@Suite struct `A QR code's drawing` {
    private let code: QRCode

    init() throws { code = try #require(QRCode("https://example.org/device")) }

    /// The modules that a drawing shows, by row; `foreground` is what a block stands for.
    private func modules(_ lines: [String], foreground: Bool) -> [[Bool]] {
        lines.flatMap { line in
            [
                line.map { "█▀".contains($0) ? foreground : !foreground },
                line.map { "█▄".contains($0) ? foreground : !foreground },
            ]
        }
    }

    private func expectSymbol(_ rows: [[Bool]]) {
        #expect(rows.count == code.columns + 1 && rows.allSatisfy { $0.count == code.columns })
        for (y, row) in rows.enumerated() {
            for (x, isDark) in row.enumerated() where isDark != code[x - 4, y - 4] {
                Issue.record("the module at \(x), \(y)")
                return
            }
        }
    }

    @Test func `has its own colours, and leaves the terminal's as they were`() {
        let lines = code.lines(.blackOnWhite)
        let (begin, end) = ("\u{1B}[38;5;16;48;5;231m", "\u{1B}[0m")
        #expect(lines.allSatisfy { $0.hasPrefix(begin) && $0.hasSuffix(end) })
        expectSymbol(modules(lines.map { String($0.dropFirst(begin.count).dropLast(end.count)) }, foreground: true))
    }

    @Test func `without colours is drawn for the terminal that it is told of`() {
        expectSymbol(modules(code.lines(.darkText), foreground: true))
        expectSymbol(modules(code.lines(.lightText), foreground: false))
        for ink in [QRCode.Ink.lightText, .darkText] {
            #expect(!code.lines(ink).joined().contains("\u{1B}"))
        }
    }

    @Test func `has a light border of four modules, as SVG too`() {
        let svg = code.svg
        #expect(svg.hasPrefix("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 33 33\""))
        #expect(svg.contains("<path fill=\"white\" d=\"M0 0h33v33h-33z\"/>") && svg.hasSuffix("</svg>"))
        #expect(!svg.contains("\n"))
        var rows = Array(repeating: Array(repeating: false, count: 33), count: 33)
        for run in svg.split(separator: "fill=\"black\" d=\"")[1].split(separator: "M").dropLast(0) {
            let numbers = run.split { !$0.isNumber }.compactMap { Int($0) }
            guard numbers.count >= 4 else { continue }
            for x in numbers[0]..<numbers[0] + numbers[2] { rows[numbers[1]][x] = true }
        }
        expectSymbol(rows + [Array(repeating: false, count: 33)])
    }
}
