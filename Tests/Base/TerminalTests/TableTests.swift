import Testing

@testable import Terminal

@Suite struct `A table` {
    @Test func `columns are as wide as their widest cell, and lines have no spaces at their ends`() {
        var table = Table(columns: ["NAME", "STATE", "NOTE"])
        table.add(["work", "authenticated", ""])
        table.add(["m", "-", "x"])
        #expect(table.lines == ["NAME  STATE          NOTE", "work  authenticated", "m     -              x"])
    }

    @Test func `the last cells are below their row if the terminal is too narrow`() {
        var table = Table(columns: ["NAME", "STATE", "PROGRAM", "DETAILS"])
        table.add(["work", "authenticated", "/usr/bin/curl", "one=1 two=2 three=3 four=4"])
        table.add(["m", "-", "", ""])
        #expect(
            table.lines(columns: 200, below: 2) == table.lines && table.lines(columns: nil, below: 2) == table.lines)
        #expect(table.lines(columns: 30, below: 0) == table.lines)
        #expect(
            table.lines(columns: 30, below: 2) == [
                "NAME  STATE", "    PROGRAM  DETAILS", "work  authenticated", "    /usr/bin/curl  one=1 two=2",
                "    three=3 four=4", "m     -",
            ])
    }

    @Test func `the widest cells are cut if the terminal is too narrow, but all stay recognizable`() {
        var table = Table(columns: ["NAME", "PROVIDER", "STATE", "PROBLEM"])
        table.add(["work", "abcdefghijklmnopqrst.supabase.co", "signed in", "A scope was lost."])
        #expect(
            table.lines(columns: 40, below: 1, shrinking: [[0, 1], [2]]) == [
                "NAME  PROVIDER                 STATE", "    PROBLEM",
                "work  abcdefghijklmnopqrst.s…  signed in", "    A scope was lost.",
            ])
        let narrow = table.lines(columns: 10, below: 0, shrinking: [[1], [3]])
        #expect(narrow.last == "work  abcdefgh…  signed in  A scope …")
    }

    @Test func `cells are sanitized`() {
        var table = Table(columns: ["A"])
        table.add(["x\u{1B}[2Jy\nz"])
        #expect(table.lines == ["A", "x?[2Jy?z"])
    }
}
