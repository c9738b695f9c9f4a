import Terminal

/// An address that a telephone can read off the screen. Nothing is drawn where it would not fit: half a code helps
/// nobody, and the address stands beside it in any case.
enum QRDisplay {
    /// Draws on standard error, if that is a terminal wide and high enough: what has scrolled away is read by no camera.
    ///
    /// - Returns: false if nothing was drawn.
    @discardableResult
    static func show(_ text: String, after introduction: String) -> Bool {
        guard let columns = Console.Stream.errors.columns, let code = QRCode(text), code.columns <= columns else {
            return false
        }
        let lines = code.lines(.suiting(.errors))
        // Light on dark where it should be dark on light: not every camera takes that.
        let isGuessed = QRCode.Ink.isGuessed(for: .errors)
        // What is waited for stands below it.
        guard lines.count + (isGuessed ? 3 : 2) <= Console.Stream.errors.rows ?? .max else { return false }
        Output.note(introduction)
        Output.note(lines.joined(separator: "\n"))
        if isGuessed { Output.note("(On a light background a camera may want it drawn for one: COLORFGBG=\"0;15\")") }
        return true
    }
}
