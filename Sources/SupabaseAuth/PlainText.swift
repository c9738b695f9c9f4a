internal import Cryptography
internal import Secrets
internal import StrictJSON

/// What outside text may look like before it is kept, sent or shown.
enum PlainText {
    /// The most bytes of one token that are kept.
    static let maxToken = 65_536
    /// The longest code of the server's that is passed on.
    static let maxCode = 64
    /// The longest message of the server's that is passed on, in characters.
    static let maxMessage = 300

    /// 1 byte to 64 KiB of printable ASCII without spaces: what fits a header and a form.
    static func isToken(_ text: String) -> Bool {
        (1...maxToken).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The text as a token; nil if it cannot be one.
    static func token(_ value: JSON?) -> Secret? {
        value?.string.flatMap { isToken($0) ? Secret($0) : nil }
    }

    /// An error code as the server writes them: letters, digits, `_`, `-`, `.`, `:`; the ID-token grant writes spaces.
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

    /// A message in any language: hooks and triggers of the project write their own. What would move a cursor, break a
    /// line or turn the reading direction becomes a question mark; nil for nothing to say.
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

    /// A UUID in its usual writing, in either case: what may stand in a path.
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

/// A signed token taken apart without a look at its signature: what its sender says, not what is proved.
struct CompactToken {
    let header: JSONObject
    let payload: JSONObject

    /// Nil for anything but three parts of base64url whose first two are JSON objects.
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
