// The rule: colours of our own wherever they may be used, because nobody can tell a terminal's background for certain.

import Glibc

extension QRCode {
    /// What a terminal draws with.
    public enum Ink: Sendable, CaseIterable {
        /// Black on white, whatever colours the terminal has: wants one that understands 256 colours.
        case blackOnWhite
        /// No colours; for a terminal whose text is lighter than its background.
        case lightText
        /// No colours; for a terminal whose text is darker than its background.
        case darkText

        /// The one for a stream: black on white where colour may be used; otherwise as `COLORFGBG` tells the terminal's
        /// own colours, which several terminals set, and light text where it says nothing.
        public static func suiting(_ stream: Console.Stream) -> Ink {
            if stream.hasColor { return .blackOnWhite }
            guard let stated = unsafe getenv("COLORFGBG") else { return .lightText }
            return withoutColor(unsafe String(cString: stated))
        }

        /// True if nothing told which one suits: without colours, on a terminal that does not say how it looks.
        public static func isGuessed(for stream: Console.Stream) -> Bool {
            unsafe !stream.hasColor && getenv("COLORFGBG") == nil
        }

        /// By `COLORFGBG`: the numbers of text and background, and at times another between them.
        static func withoutColor(_ stated: String) -> Ink {
            // 7 and 15 are the two whites.
            ["7", "15"].contains(stated.split(separator: ";").last ?? "") ? .darkText : .lightText
        }
    }
}
