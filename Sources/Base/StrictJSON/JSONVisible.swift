/// JSON that is also safe to print on a terminal. Valid JSON may contain characters that move the cursor (C1 controls),
/// reverse the direction of text (bidi controls), are invisible, or end a line (U+2028). They are written as `\u`
/// escapes, which a JSON parser reads back unchanged.
extension JSON {
    /// The value as compact JSON text. Every character that a terminal does not show as a visible character is escaped.
    public var visibleText: String {
        let text = text
        guard !text.unicodeScalars.allSatisfy(JSON.isVisible) else { return text }
        // JSON's syntax is ASCII, so a character that is not ASCII is always inside a string, where an escape is
        // allowed.
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

    /// True if a terminal shows the character as it is. ASCII characters always are, because the writer has already
    /// escaped ASCII controls.
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
