public import HTTPMessages

/// When a provider wants to be asked again (RFC 9110 section 10.2.3). A number we would not wait for is not obeyed
/// to the letter: a day is the most, so that no answer can silence an account for good.
public enum RetryAfter {
    /// The most seconds that are believed.
    public static let longest = 86_400

    /// Seconds from now, 0...86400; nil where nothing usable is said. The date form is ignored: it would compare the
    /// provider's clock with ours.
    public static func seconds(in fields: HTTPFields) -> Int? {
        guard let text = fields["Retry-After"] else { return nil }
        let digits = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
        let end = digits.firstIndex { $0 < 0x30 || $0 > 0x39 } ?? digits.endIndex
        guard end > digits.startIndex, digits[end...].allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return nil }
        var seconds = 0
        for digit in digits[..<end] {
            seconds = min(seconds * 10 + Int(digit - 0x30), longest)
        }
        return seconds
    }
}
