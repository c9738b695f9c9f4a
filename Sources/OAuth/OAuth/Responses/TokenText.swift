import Secrets

/// The syntax of tokens: RFC 6749 appendix A.12 and A.17 allow printable ASCII. Other characters could break the header
/// or form in which the token is sent.
enum TokenText {
    /// The maximum length of a token or code in bytes.
    static let maxLength = 65_536

    /// The text as a token: 1 byte to 64 KiB of printable ASCII, with spaces only if they are allowed. Nil for other
    /// text.
    static func secret(_ text: String?, allowsSpace: Bool = false, limit: Int = maxLength) -> Secret? {
        guard let text, !text.isEmpty, text.utf8.count <= limit else { return nil }
        let lowest: UInt8 = allowsSpace ? 0x20 : 0x21
        return text.utf8.allSatisfy { $0 >= lowest && $0 <= 0x7E } ? Secret(text) : nil
    }
}
