/// Makes text from outside safe to show: a provider, an app or a callback may try to move the cursor, recolour the
/// screen, reorder letters or hide some. What is left is one line of visible characters.
public enum Sanitizer {
    /// Longer text is cut: an error description should not scroll the reason for it away.
    public static let maxLength = 200

    /// The text with every character that is not plainly visible shown as `?`, cut to `limit` Unicode scalars.
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

    /// True for a character that takes its place on the line and does nothing else.
    public static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return (0x20..<0x7F).contains(scalar.value) }
        let properties = scalar.properties
        switch properties.generalCategory {
        // Controls; format characters (bidi controls, zero-width, tags); line ends; what no font shows.
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        // Spaces that look like none, or like several.
        case .spaceSeparator: return false
        // Fillers, joiners and variation selectors are letters and marks by category, and invisible.
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    private static func replacement(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar.properties.generalCategory == .spaceSeparator ? " " : "?"
    }
}
