// Own colours are used wherever colour is allowed, because a terminal's background cannot be determined reliably.

import Glibc

extension QRCode {
    /// How the symbol is drawn on a terminal.
    public enum Ink: Sendable, CaseIterable {
        /// Black on white, independent of the terminal's colours; needs 256 colours.
        case blackOnWhite
        /// Without colours, for a terminal with light text on a dark background.
        case lightText
        /// Without colours, for a terminal with dark text on a light background.
        case darkText

        /// Chooses for a stream: black on white where colour may be used; otherwise by `COLORFGBG`, in which several
        /// terminals describe their colours; light text if it is not set.
        public static func suiting(_ stream: Console.Stream) -> Ink {
            if stream.hasColor { return .blackOnWhite }
            guard let stated = unsafe getenv("COLORFGBG") else { return .lightText }
            return withoutColor(unsafe String(cString: stated))
        }

        /// True if the choice is only a guess: there is no colour and no `COLORFGBG`.
        public static func isGuessed(for stream: Console.Stream) -> Bool {
            unsafe !stream.hasColor && getenv("COLORFGBG") == nil
        }

        /// By `COLORFGBG`: the numbers of the text's and the background's colour, in some terminals with another value
        /// in between.
        static func withoutColor(_ stated: String) -> Ink {
            // 7 and 15 are the two whites.
            ["7", "15"].contains(stated.split(separator: ";").last ?? "") ? .darkText : .lightText
        }
    }
}
