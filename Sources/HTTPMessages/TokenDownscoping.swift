/// What a token can be narrowed to, as far as its text tells: a mistake here is the caller's, and no provider is asked.
public enum TokenDownscoping {
    /// Longer texts are nobody's scope, audience or resource.
    static let maxLength = 2_000

    /// RFC 6749 section 3.3: printable ASCII without spaces, quotes and backslashes.
    public static func isScope(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maxLength
            && text.utf8.allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            }
    }

    /// Whom a token is for, in the provider's words (RFC 8693 section 2.1 has it as a name): no control characters.
    public static func isAudience(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maxLength
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// RFC 8707 section 2: an absolute URI without a fragment.
    public static func isResource(_ text: String) -> Bool {
        guard text.utf8.count <= maxLength, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !text.utf8.contains(UInt8(ascii: "#")), let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        // RFC 3986 section 3.1, and something behind it.
        let scheme = text.utf8[..<colon]
        let isScheme = scheme.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E: true
            default: false
            }
        }
        let first = scheme.first.map { $0 | 0x20 } ?? 0
        return isScheme && (0x61...0x7A).contains(first) && text.utf8.index(after: colon) != text.utf8.endIndex
    }
}

/// A bound on what tokens are good for, beside what was granted.
extension TokenDownscoping {
    /// What of a ceiling can be asked for: a refresh names no scope that was not granted (RFC 6749 section 6). The whole
    /// ceiling where nothing is known of what was.
    public static func reachable(_ ceiling: [String], of granted: some Collection<String>) -> [String] {
        granted.isEmpty ? ceiling : ceiling.filter(granted.contains)
    }

    /// What a person should know of an account below a ceiling that does not fit it; nil if it fits.
    public static func remark(on account: String, below ceiling: [String], of granted: some Collection<String>)
        -> String?
    {
        let reachable = reachable(ceiling, of: granted)
        let strangers = ceiling.filter { !reachable.contains($0) }
        // A session that is good for less than the ceiling is served as it is.
        guard !strangers.isEmpty, !granted.allSatisfy(ceiling.contains) else { return nil }
        let words = "\(account) does not ask its provider for “\(strangers.joined(separator: " "))”"
        return reachable.isEmpty
            ? "\(words): no token of it is within the scope, so none will be served."
            : "\(words): its tokens will be good for “\(reachable.joined(separator: " "))” at most."
    }
}
