import StrictJSON

/// Lifetimes as providers write them: a number, a number in quotes, a fraction, nothing. A lifetime is cosmetic beside
/// the token it comes with, so no form of it fails an answer, and none can trap.
enum LenientNumber {
    /// A year: longer promises are cut to it.
    static let longest = 31_536_000

    /// Whole seconds, 0...one year; nil where no number is written.
    static func seconds(_ value: JSON?) -> Int? {
        switch value {
        case .integer(let seconds): min(max(seconds, 0), longest)
        case .double(let seconds): clamped(seconds)
        case .string(let text): number(text).flatMap(clamped)
        default: nil
        }
    }

    private static func clamped(_ seconds: Double) -> Int? {
        guard !seconds.isNaN else { return nil }
        return Int(min(max(seconds, 0), Double(longest)))
    }

    /// Only decimal digits and their signs: `Double` alone would also read "nan", "inf" and hexadecimal.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.count <= 32, text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return Double(text)
    }
}
