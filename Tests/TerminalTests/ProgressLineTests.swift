import Testing

@testable import Terminal

@Suite struct `A progress line` {
    private final class Written {
        var text = ""
    }

    @Test func `a terminal sees one line that is kept current`() {
        let written = Written()
        let line = ProgressLine(isTerminal: true) { written.text += $0 }
        line.show("9 left")
        line.show("9 left")
        line.show("8 left")
        line.clear()
        line.clear()
        #expect(written.text == "\r\u{1B}[K9 left\r\u{1B}[K8 left\r\u{1B}[K")
    }

    @Test func `a file gets one line, once`() {
        let written = Written()
        let line = ProgressLine(isTerminal: false) { written.text += $0 }
        line.show("9 left")
        line.show("8 left")
        line.clear()
        #expect(written.text == "9 left\n")
    }
}
