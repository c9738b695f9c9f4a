/// JSON for eyes and terminals as well. JSON alone lets through what moves a cursor (C1 controls), turns a line around
/// (bidi controls), hides in it, or ends it (U+2028): that is written as an escape, and read back unchanged.
extension JSON {
    /// The value as compact JSON text in ASCII, but for letters and signs that a terminal shows as they are.
    public var visibleText: String {
        let text = text
        guard !text.unicodeScalars.allSatisfy(JSON.isVisible) else { return text }
        // What is not ASCII stands inside a string, always: JSON's own signs are ASCII.
        var output = ""
        for scalar in text.unicodeScalars {
            if JSON.isVisible(scalar) {
                output.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 { output += JSON.escape(of: unit) }
            }
        }
        return output
    }

    /// Of JSON's text, which has no ASCII control in it.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return true }
        let properties = scalar.properties
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            return false
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    private static func escape(of unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }
}
