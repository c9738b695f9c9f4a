/// Words from outside that a person or a log will see: nothing but the characters that RFC 6749 appendix A.7 and A.8
/// allow, and no more of them than fit. A terminal escape or a line break ends here.
enum CheckedText {
    /// The longest error code kept.
    static let maxCode = 64
    /// The longest description kept.
    static let maxDescription = 300

    /// An `error`, e.g. `access_denied`.
    static func code(_ text: String) -> String { clean(text, limit: maxCode) }

    /// An `error_description`; nil for none.
    static func description(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        return clean(text, limit: maxDescription)
    }

    /// Each scalar outside %x20-21 / %x23-5B / %x5D-7E becomes a question mark.
    private static func clean(_ text: String, limit: Int) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(limit) {
            let isAllowed = scalar.value >= 0x20 && scalar.value <= 0x7E && scalar != "\"" && scalar != "\\"
            kept.append(isAllowed ? scalar : "?")
        }
        return String(kept)
    }
}
