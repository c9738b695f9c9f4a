import Testing

@testable import Terminal

@Suite struct `A QR code's penalty` {
    private func line(_ text: String) -> Int { QRCodeGrid.lines(text.map { $0 == "#" }) }

    @Test func `counts equal modules in a line`() {
        #expect(line("#.#.#.#") == 0 && line("####.") == 0)
        #expect(line("#####") == 3 && line(".....") == 3 && line("######") == 4)
        #expect(line("#####.....") == 6 && line("#####.#####") == 6)
    }

    @Test func `counts what looks like a finder`() {
        #expect(line("#.###.#") == 80, "the border is light on both sides")
        #expect(line("##.###.##") == 0)
        #expect(line("#.#.###.#....#") == 40 && line("#....#.###.#.#") == 40)
        #expect(line("##....#.###.#....##") == 80)
        #expect(line("##...#.###.#...##") == 0)
    }

    @Test func `counts blots and balance over the symbol`() {
        let grid = QRCodeGrid(QRCodeVersion(1, .low))
        let dark = grid.isDark.count { $0 }
        #expect(grid.balance == abs(dark * 20 - 4_410) / 441 * 10)
        var blots = 0
        for row in 0..<20 {
            for column in 0..<20 {
                let first = grid[column, row]
                if grid[column + 1, row] == first, grid[column, row + 1] == first, grid[column + 1, row + 1] == first {
                    blots += 3
                }
            }
        }
        #expect(grid.blots == blots && blots > 0)
        let lines = (0..<21).reduce(0) { sum, index in
            sum + QRCodeGrid.lines((0..<21).map { grid[$0, index] })
                + QRCodeGrid.lines((0..<21).map { grid[index, $0] })
        }
        #expect(grid.penalty == lines + grid.blots + grid.balance)
    }
}
