/// What a program waits for, shown on standard error. On a terminal it is one line that is updated in place and cut to
/// the terminal's width, because a wrapped line would scroll the screen with each update. Elsewhere, and on a terminal
/// that cannot erase a line (`TERM=dumb`), the first text is written once.
public final class ProgressLine {
    private let isTerminal: Bool
    private let columns: () -> Int
    private let write: (String) -> Void
    private var shown = ""

    public convenience init() {
        self.init(
            isTerminal: Console.Stream.errors.isTerminal && Console.movesCursor,
            // A terminal that does not report its width is treated as 80 columns wide.
            columns: { Console.Stream.errors.columns ?? 80 }
        ) { _ = Console.write($0, to: .errors) }
    }

    init(isTerminal: Bool, columns: @escaping () -> Int = { 80 }, write: @escaping (String) -> Void) {
        self.isTerminal = isTerminal
        self.columns = columns
        self.write = write
    }

    /// Shows the text and its ending, which must both be safe for a terminal. If they do not fit, the text is cut and
    /// the ending is kept, unless hardly any text would be left.
    public func show(_ text: String, ending: String = "") { show([text], ending: ending, hint: "") }

    /// Shows the first of the texts that fits with the ending and the hint, else the first that fits with the ending
    /// alone. If none does, the last is cut. All must be safe for a terminal.
    ///
    /// - Parameter texts: the one that says the most first.
    public func show(_ texts: [String], ending: String, hint: String) {
        guard isTerminal else {
            let line = (texts.first ?? "") + ending + hint
            if shown.isEmpty { write(line + "\n") }
            shown = line
            return
        }
        // The last column stays empty: some terminals wrap as soon as it is written.
        let line = ProgressLine.line(texts, ending, hint, room: columns() - 1)
        guard line != shown else { return }
        // Moves to the start of the line and erases it.
        write("\r\u{1B}[K" + line)
        shown = line
    }

    private static func line(_ texts: [String], _ ending: String, _ hint: String, room: Int) -> String {
        for end in [ending + hint, ending] {
            if let text = texts.first(where: { TextWidth.of($0 + end) <= room }) { return text + end }
        }
        let text = texts.last ?? ""
        let left = room - TextWidth.of(ending)
        // With fewer than 12 columns for the text, the whole is cut at its end instead.
        return left < 12 ? TextWidth.cut(text + ending, to: room) : TextWidth.cut(text, to: left) + ending
    }

    /// Erases the line of another thread's progress on standard error, which shows it again at its next update.
    public static func erase() {
        if Console.Stream.errors.isTerminal, Console.movesCursor { _ = Console.write("\r\u{1B}[K", to: .errors) }
    }

    /// Erases the line, so that the next output starts at the beginning of the line.
    public func clear() {
        if isTerminal, !shown.isEmpty { write("\r\u{1B}[K") }
        if isTerminal { shown = "" }
    }
}
