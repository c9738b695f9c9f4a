/// A mark before a line that says whether something is in order. It is one column wide.
public enum Mark: Sendable {
    case good, warning, bad
    /// Neither in order nor wrong.
    case neutral

    /// The mark for a stream: a symbol or an ASCII character, with colour where the stream has it.
    public func text(on stream: Console.Stream) -> String {
        let text = stream.hasSymbols ? symbol : character
        return style.map { $0.apply(text, on: stream) } ?? text
    }

    private var symbol: String {
        switch self {
        case .good: "✓"
        case .warning: "!"
        case .bad: "✗"
        case .neutral: "·"
        }
    }

    private var character: String {
        switch self {
        case .good: "+"
        case .warning: "!"
        case .bad: "x"
        case .neutral: "-"
        }
    }

    private var style: Style? {
        switch self {
        case .good: .green
        case .warning: .yellow
        case .bad: .red
        case .neutral: nil
        }
    }
}
