import Testing

@testable import Terminal

@Suite struct `The width of text` {
    @Test func `counts two columns for wide letters and none for combining marks`() {
        #expect(TextWidth.of("東京") == 4)
        #expect(TextWidth.of("e\u{301}") == 1)
        #expect(TextWidth.of("") == 0)
    }

    @Test func `is never more than asked for after a cut`() {
        #expect(TextWidth.cut("four", to: 4) == "four")
        #expect(TextWidth.cut("fours", to: 4) == "fou…")
        #expect(TextWidth.cut("東京都", to: 5) == "東京…")
        #expect(TextWidth.cut("東京都", to: 4) == "東…")
        #expect(TextWidth.cut("fours", to: 1) == "…" && TextWidth.cut("fours", to: 0).isEmpty)
        #expect(TextWidth.cut("fours", to: -1).isEmpty)
    }

    @Test func `gives the rows that a text fills`() {
        #expect(TextWidth.rows(of: "", columns: 80) == 1)
        #expect(TextWidth.rows(of: String(repeating: "a", count: 80), columns: 80) == 1)
        #expect(TextWidth.rows(of: String(repeating: "a", count: 81) + "\n\nb", columns: 80) == 4)
    }
}
