/// What a program waits for, on standard error: a terminal gets one line that is kept current, anything else one
/// line, once.
public final class ProgressLine {
    private let isTerminal: Bool
    private let write: (String) -> Void
    private var shown = ""

    public convenience init() {
        self.init(isTerminal: Console.Stream.errors.isTerminal) { _ = Console.write($0, to: .errors) }
    }

    init(isTerminal: Bool, write: @escaping (String) -> Void) {
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Shows the text, which must be safe for a terminal.
    public func show(_ text: String) {
        guard isTerminal else {
            if shown.isEmpty { write(text + "\n") }
            shown = text
            return
        }
        guard text != shown else { return }
        // Back to the line's start, and what stood there erased.
        write("\r\u{1B}[K" + text)
        shown = text
    }

    /// Takes the line away, so that the next output starts clean.
    public func clear() {
        if isTerminal, !shown.isEmpty { write("\r\u{1B}[K") }
        if isTerminal { shown = "" }
    }
}
