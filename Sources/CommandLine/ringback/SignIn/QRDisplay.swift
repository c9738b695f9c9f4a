import Terminal

/// A QR code of an address, for a phone's camera. It is drawn only where all of it fits, since a part of it is useless.
/// The address is printed beside it in any case.
enum QRDisplay {
    /// Draws on standard error, if that is a terminal with enough rows and columns: a code that has scrolled away
    /// cannot be scanned.
    ///
    /// - Parameter others: texts above and below that the user needs too. They must not scroll away either.
    /// - Returns: false if nothing was drawn.
    @discardableResult
    static func show(_ text: String, after introduction: String, beside others: [String] = []) -> Bool {
        guard let columns = Console.Stream.errors.columns, let code = QRCode(text), code.columns <= columns else {
            return false
        }
        let lines = code.lines(.suiting(.errors))
        // The code is drawn light on dark, which not every camera reads.
        let hint =
            QRCode.Ink.isGuessed(for: .errors)
            ? "(If this terminal has a light background and the camera reads nothing, set COLORFGBG=\"0;15\".)" : nil
        let texts = others + [introduction] + (hint.map { [$0] } ?? [])
        // The last row is for the cursor and the line that says what is awaited.
        let rows = texts.reduce(lines.count + 1) { $0 + TextWidth.rows(of: $1, columns: columns) }
        guard rows <= Console.Stream.errors.rows ?? .max else { return false }
        Output.note(introduction)
        Output.note(lines.joined(separator: "\n"))
        if let hint { Output.note(hint) }
        return true
    }
}
