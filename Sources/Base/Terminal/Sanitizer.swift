/// Makes text from outside safe to show. A provider, an app or a callback could move the cursor, change colours,
/// reorder letters or hide text. The result is one line of visible characters.
public enum Sanitizer {
    /// The maximum length in Unicode scalars, so that a long error description does not scroll other lines off the
    /// screen.
    public static let maxLength = 200

    /// The text with a space for each space character and `?` for each other character that is not visible, cut to
    /// `limit` Unicode scalars.
    public static func line(_ text: String, limit: Int = maxLength) -> String {
        var output = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            guard count < limit else {
                output.removeLast()
                output.append("…")
                break
            }
            output.append(isVisible(scalar) ? scalar : replacement(of: scalar))
            count += 1
        }
        return String(output)
    }

    /// True for a character that is visible and has no other effect.
    public static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return (0x20..<0x7F).contains(scalar.value) }
        let properties = scalar.properties
        switch properties.generalCategory {
        // Controls; format characters (bidi controls, zero-width, tags); line ends; characters without a glyph.
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        // Spaces of unusual width.
        case .spaceSeparator: return false
        // Fillers, joiners and variation selectors have the category of letters or marks, but are invisible.
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    private static func replacement(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar.properties.generalCategory == .spaceSeparator ? " " : "?"
    }
}
