internal import Encodings
internal import Secrets
internal import StrictJSON

/// Checks of text from outside before it is stored, sent or shown.
enum PlainText {
    /// The maximum length of a token in bytes.
    static let maxToken = 65_536
    /// The maximum length of an error code in bytes.
    static let maxCode = 64
    /// The maximum length of a message in characters.
    static let maxMessage = 300

    /// True for 1 byte to 64 KiB of printable ASCII without spaces, which is safe in a header field and a form.
    static func isToken(_ text: String) -> Bool {
        (1...maxToken).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The text as a token; nil if it is not one.
    static func token(_ value: JSON?) -> Secret? {
        value?.string.flatMap { isToken($0) ? Secret($0) : nil }
    }

    /// The server's error code: letters, digits, `_`, `-`, `.`, `:`, and spaces, which the ID token grant uses. Nil for
    /// other text.
    static func code(_ text: String?) -> String? {
        guard let text, (1...maxCode).contains(text.utf8.count) else { return nil }
        let isCode = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: ":"), UInt8(ascii: " "):
                true
            default: false
            }
        }
        return isCode ? text : nil
    }

    /// A message in any language, since a project's hooks and triggers may write their own. Control characters, line
    /// breaks and characters that change the text direction become question marks. Nil if it is empty.
    static func message(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(maxMessage) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                kept.append("?")
            default: kept.append(scalar)
            }
        }
        return String(kept)
    }

    /// True for a UUID in its usual form, in either letter case. It is safe in a path.
    static func isUUID(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.indices.allSatisfy { index in
            switch index {
            case 8, 13, 18, 23: bytes[index] == UInt8(ascii: "-")
            default: (0x30...0x39).contains(bytes[index]) || (0x61...0x66).contains(bytes[index] | 0x20)
            }
        }
    }
}

/// A JWT that is parsed but not verified.
struct CompactToken {
    let header: JSONObject
    let payload: JSONObject

    /// Nil unless the token has three base64url parts, the first two of which are JSON objects.
    init?(_ token: Secret) {
        guard token.count <= PlainText.maxToken else { return nil }
        let parts = token.revealedBytes().split(
            separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = CompactToken.object(parts[0]), let payload = CompactToken.object(parts[1])
        else { return nil }
        self.header = header
        self.payload = payload
    }

    private static func object(_ part: ArraySlice<UInt8>) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0).object }
    }
}
