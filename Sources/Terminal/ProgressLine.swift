/// What a program waits for, on standard error. A terminal gets one line that is kept current and is never wider than the
/// terminal: a wrapped line would scroll the screen with every change. Anything else gets one line, once.
public final class ProgressLine {
    private let isTerminal: Bool
    private let columns: () -> Int
    private let write: (String) -> Void
    private var shown = ""

    public convenience init() {
        self.init(
            isTerminal: Console.Stream.errors.isTerminal,
            // A terminal that does not tell its width is taken for one of the usual width.
            columns: { Console.Stream.errors.columns ?? 80 }
        ) { _ = Console.write($0, to: .errors) }
    }

    init(isTerminal: Bool, columns: @escaping () -> Int = { 80 }, write: @escaping (String) -> Void) {
        self.isTerminal = isTerminal
        self.columns = columns
        self.write = write
    }

    /// Shows the text and its ending, which must be safe for a terminal. Where both do not fit, the text is cut, and the
    /// ending stays as long as it fits alone.
    public func show(_ text: String, ending: String = "") {
        guard isTerminal else {
            if shown.isEmpty { write(text + ending + "\n") }
            shown = text + ending
            return
        }
        // The last column stays empty: some terminals wrap as soon as it is written.
        let room = columns() - 1
        let left = room - TextWidth.of(ending)
        // Less than a few letters of the text say nothing.
        let line = left < 12 ? TextWidth.cut(text + ending, to: room) : TextWidth.cut(text, to: left) + ending
        guard line != shown else { return }
        // Back to the line's start, and what stood there erased.
        write("\r\u{1B}[K" + line)
        shown = line
    }

    /// Erases the line, so that the next output starts on an empty one.
    public func clear() {
        if isTerminal, !shown.isEmpty { write("\r\u{1B}[K") }
        if isTerminal { shown = "" }
    }
}
