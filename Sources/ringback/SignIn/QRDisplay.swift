import Terminal

/// An address that a telephone can read off the screen. Nothing is drawn where it would not fit: half a code helps
/// nobody, and the address stands beside it in any case.
enum QRDisplay {
    /// Draws on standard error, if that is a terminal wide and high enough: no camera reads what has scrolled away.
    ///
    /// - Parameter others: texts above and below that the person needs too. They must not scroll away either.
    /// - Returns: false if nothing was drawn.
    @discardableResult
    static func show(_ text: String, after introduction: String, beside others: [String] = []) -> Bool {
        guard let columns = Console.Stream.errors.columns, let code = QRCode(text), code.columns <= columns else {
            return false
        }
        let lines = code.lines(.suiting(.errors))
        // Light on dark where it should be dark on light: not every camera takes that.
        let hint =
            QRCode.Ink.isGuessed(for: .errors)
            ? "(On a light background a camera may want it drawn for one: COLORFGBG=\"0;15\")" : nil
        let texts = others + [introduction] + (hint.map { [$0] } ?? [])
        // The last row is for the cursor, which stands in the line that says what is awaited.
        let rows = texts.reduce(lines.count + 1) { $0 + TextWidth.rows(of: $1, columns: columns) }
        guard rows <= Console.Stream.errors.rows ?? .max else { return false }
        Output.note(introduction)
        Output.note(lines.joined(separator: "\n"))
        if let hint { Output.note(hint) }
        return true
    }
}
