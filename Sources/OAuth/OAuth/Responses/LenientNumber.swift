import Encodings
import StrictJSON

/// Reads lifetimes leniently: as a number, a quoted number or a fraction. A lifetime is less important than the token
/// beside it, so no form of it makes a response fail, and no number can trap.
enum LenientNumber {
    /// A year in seconds; longer lifetimes are reduced to it.
    static let longest = 31_536_000

    /// Whole seconds, 0...one year; nil if the value is not a number.
    static func seconds(_ value: JSON?) -> Int? {
        switch value {
        case .integer(let seconds): min(max(seconds, 0), longest)
        case .double(let seconds): clamped(seconds)
        case .string(let text): number(text).flatMap(clamped)
        default: nil
        }
    }

    /// Unix seconds of the years 1970 to 9999, as a number, a quoted number, or a date and time (RFC 3339). A number too
    /// large for that is in milliseconds.
    static func instant(_ value: JSON?) -> Int? {
        let seconds: Double? =
            switch value {
            case .integer(let seconds)?: Double(seconds)
            case .double(let seconds)?: seconds
            case .string(let text)?: number(text) ?? Timestamp.seconds(of: text).map(Double.init)
            default: nil
            }
        guard let seconds, seconds > 0 else { return nil }
        let latest = 253_402_300_799.0
        let stated = seconds > latest ? seconds / 1_000 : seconds
        return stated <= latest ? Int(stated) : nil
    }

    private static func clamped(_ seconds: Double) -> Int? {
        guard !seconds.isNaN else { return nil }
        return Int(min(max(seconds, 0), Double(longest)))
    }

    /// Only decimal digits, signs and exponents: `Double` would also read "nan", "inf" and hexadecimal.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.count <= 32, text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return Double(text)
    }
}
