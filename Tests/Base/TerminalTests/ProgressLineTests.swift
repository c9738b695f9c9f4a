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

    @Test func `words are left out before anything is cut`() {
        let texts = ["Waiting for the sign-in to work at id.example.org", "Waiting for the sign-in to work"]
        for (columns, expected) in [
            (80, "\(texts[0]), 9:59 left (Ctrl-C cancels)"), (76, "\(texts[1]), 9:59 left (Ctrl-C cancels)"),
            (60, "\(texts[1]), 9:59 left (Ctrl-C cancels)"),
            (59, "\(texts[1]), 9:59 left"), (40, "Waiting for the sign-in to …, 9:59 left"),
        ] {
            let written = Written()
            let line = ProgressLine(isTerminal: true, columns: { columns }) { written.text += $0 }
            line.show(texts, ending: ", 9:59 left", hint: " (Ctrl-C cancels)")
            #expect(written.text == "\r\u{1B}[K" + expected)
        }
    }

    @Test func `a terminal never gets more than its width, and keeps the ending`() {
        let written = Written()
        var columns = 40
        let line = ProgressLine(isTerminal: true, columns: { columns }) { written.text += $0 }
        let text = "Waiting for the sign-in to work at id.example.org"
        line.show(text, ending: ", 9:59 left")
        #expect(written.text == "\r\u{1B}[KWaiting for the sign-in to …, 9:59 left")
        written.text = ""
        // The window was made narrower while it was shown.
        columns = 20
        line.show(text, ending: ", 9:58 left")
        #expect(written.text == "\r\u{1B}[KWaiting for the si…")
        written.text = ""
        columns = 200
        line.show(text, ending: ", 9:57 left")
        #expect(written.text == "\r\u{1B}[K\(text), 9:57 left")
    }
}
