internal import Glibc
public import HTTPMessages

/// Reads `Retry-After` (RFC 9110 section 10.2.3). It is limited to a day, so that no response can stop an account for
/// good.
public enum RetryAfter {
    /// The maximum in seconds.
    public static let longest = 86_400

    /// Seconds from now, 0...86400; nil if there is no usable value. A date is compared with the response's own `Date`,
    /// because the provider's clock may differ from ours; only without that with our clock.
    public static func seconds(in fields: HTTPFields) -> Int? {
        guard let text = fields["Retry-After"] else { return nil }
        if let date = HTTPDate.seconds(of: text) {
            let now = fields["Date"].flatMap { HTTPDate.seconds(of: $0) } ?? time(nil)
            return min(max(date - now, 0), longest)
        }
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
