/// Text from a provider for users or logs, reduced to the characters that RFC 6749 appendix A.7 and A.8 allow and to a
/// maximum length. This removes terminal escapes and line breaks.
enum CheckedText {
    /// The maximum length of an error code.
    static let maxCode = 64
    /// The maximum length of a description.
    static let maxDescription = 300

    /// An `error` such as `access_denied`.
    static func code(_ text: String) -> String { clean(text, limit: maxCode) }

    /// An `error_description`; nil if it is empty.
    static func description(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        return clean(text, limit: maxDescription)
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
