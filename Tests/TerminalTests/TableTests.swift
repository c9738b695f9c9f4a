import Testing

@testable import Terminal

@Suite struct `A table` {
    @Test func `columns are as wide as their widest cell, and lines have no spaces at their ends`() {
        var table = Table(columns: ["NAME", "STATE", "NOTE"])
        table.add(["work", "authenticated", ""])
        table.add(["m", "-", "x"])
        #expect(table.lines == ["NAME  STATE          NOTE", "work  authenticated", "m     -              x"])
    }

    @Test func `cells are sanitized`() {
        var table = Table(columns: ["A"])
        table.add(["x\u{1B}[2Jy\nz"])
        #expect(table.lines == ["A", "x?[2Jy?z"])
    }
}
