import Secrets

/// What a token may look like. RFC 6749 appendix A.12 and A.17 allow printable ASCII; anything else could break out of
/// the header or the form it is sent in.
enum TokenText {
    /// The most bytes of one token or code that we keep.
    static let maxLength = 65_536

    /// The text as a token: 1...64 KiB of printable ASCII, spaces only where they are allowed.
    static func secret(_ text: String?, allowsSpace: Bool = false, limit: Int = maxLength) -> Secret? {
        guard let text, !text.isEmpty, text.utf8.count <= limit else { return nil }
        let lowest: UInt8 = allowsSpace ? 0x20 : 0x21
        return text.utf8.allSatisfy { $0 >= lowest && $0 <= 0x7E } ? Secret(text) : nil
    }
}
