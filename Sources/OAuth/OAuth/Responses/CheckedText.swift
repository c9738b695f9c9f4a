/// Text from a provider for users or logs, with a maximum length and without terminal escapes, line breaks and
/// characters that change the direction of the text.
enum CheckedText {
    /// The maximum length of an error code.
    static let maxCode = 64
    /// The maximum length of a description.
    static let maxDescription = 300

    /// An `error` such as `access_denied`: the characters that RFC 6749 appendix A.7 allows; others become question
    /// marks.
    static func code(_ text: String) -> String { clean(text, limit: maxCode) }

    /// An `error_description`; nil if it is empty. Its letters may be of any language, though RFC 6749 appendix A.8
    /// allows ASCII only. White space and line breaks become single blanks; control, format and unassigned characters
    /// are left out.
    static func description(_ text: String?) -> String? {
        var kept = String.UnicodeScalarView()
        var isBlankDue = false
        for scalar in (text ?? "").unicodeScalars.prefix(4 * maxDescription) {
            switch scalar.properties.generalCategory {
            case .lineSeparator, .paragraphSeparator, .spaceSeparator: isBlankDue = true
            case .control where [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85].contains(scalar.value): isBlankDue = true
            case .control, .format, .privateUse, .surrogate, .unassigned: break
            default:
                if isBlankDue, !kept.isEmpty { kept.append(" ") }
                isBlankDue = false
                kept.append(scalar)
            }
            if kept.count >= maxDescription { break }
        }
        return kept.isEmpty ? nil : String(kept)
    }

    /// Replaces each scalar outside %x20-21 / %x23-5B / %x5D-7E by a question mark.
    private static func clean(_ text: String, limit: Int) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(limit) {
            let isAllowed = scalar.value >= 0x20 && scalar.value <= 0x7E && scalar != "\"" && scalar != "\\"
            kept.append(isAllowed ? scalar : "?")
        }
        return String(kept)
    }
}
