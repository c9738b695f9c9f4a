import RingbackBase

/// Extracts a refresh token from a response that cannot be used as a whole. The provider may have rotated, and the old
/// token is then invalid. Only an unambiguous value is taken:
/// - from a success that is not valid JSON, see ``MemberSalvage``; from a form that was cut off;
/// - from a success in which other text is before the object, such as `)]}'`, a function's name or a warning;
/// - from the one token set in a member of the outermost object, in a list or in a text;
/// - from a complete token set whose status is neither a success nor a redirect.
enum RefreshTokenSalvage {
    private static let name = "refresh_token"

    static func token(in response: HTTPResponse) -> Secret? {
        guard (200..<300).contains(response.status) else {
            // Redirects come from networks that ask for a sign-in of their own.
            guard !(300..<400).contains(response.status), !response.isTruncated,
                let object = try? ResponseReader.tokenObject(in: response)
            else { return nil }
            return token(ofSet: object)
        }
        guard ResponseReader.isForm(response) else { return token(in: response.body) }
        // If a complete form cannot be parsed, it is unknown where it is damaged, so nothing is taken.
        return response.isTruncated ? formToken(in: response.body) : nil
    }

    /// From a form that was cut off: only a value that is followed by a separator is complete.
    private static func formToken(in body: Secret) -> Secret? {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        guard let end = bytes.lastIndex(of: UInt8(ascii: "&")), let pairs = try? FormEncoding.parse(bytes[..<end])
        else { return nil }
        // The name may occur again at the point where the form was cut off.
        let rest = bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "=") }
        let names = pairs.map(\.name) + ((try? FormEncoding.parse(rest)) ?? []).map(\.name)
        guard names.count(where: { $0 == name }) == 1 else { return nil }
        return TokenText.secret(pairs.first { $0.name == name }?.value, allowsSpace: true)
    }

    /// From a body that should be JSON.
    static func token(in body: Secret) -> Secret? {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        if let token = TokenText.secret(MemberSalvage.text(of: name, in: bytes), allowsSpace: true) { return token }
        if let json = try? JSON(parsing: bytes) { return token(nestedIn: json) }
        guard let object = surroundedObject(in: bytes) else { return nil }
        return TokenText.secret(object[name]?.string, allowsSpace: true) ?? token(nestedIn: .object(object))
    }

    /// From a complete token set: an error response may repeat the refresh token of the request, but has no access
    /// token.
    static func token(ofSet object: JSONObject) -> Secret? {
        guard hasNoError(object), TokenText.secret(object["access_token"]?.string) != nil else { return nil }
        return TokenText.secret(object[name]?.string, allowsSpace: true)
    }

    /// From the only token set one level below an object without tokens.
    static func token(nestedIn json: JSON) -> Secret? {
        let values: [JSON]
        switch json {
        case .object(let object):
            guard hasNoError(object), object[name] == nil, object["access_token"] == nil else { return nil }
            values = object.members.map(\.value)
        case .array(let elements): values = elements
        case .string: values = [json]
        default: return nil
        }
        let sets = values.compactMap(object).filter { $0[name] != nil }
        return sets.count == 1 ? token(ofSet: sets[0]) : nil
    }

    /// The object, which some servers encode a second time, as a text.
    private static func object(_ value: JSON) -> JSONObject? {
        guard let text = value.string else { return value.object }
        return text.utf8.first == UInt8(ascii: "{") ? (try? JSON(parsing: text.utf8))?.object : nil
    }

    private static func hasNoError(_ object: JSONObject) -> Bool {
        switch object["error"] {
        case nil, .null?, .string("")?: true
        default: false
        }
    }

    /// The object at the end of a text that is not JSON; after it there may be only the end of a call. The name must
    /// not occur before. An object inside of one that was cut off is never taken: it is not the first one.
    private static func surroundedObject(in bytes: [UInt8]) -> JSONObject? {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard bytes.first(where: { !isSpace($0) }) != UInt8(ascii: "["),
            let last = bytes.lastIndex(of: UInt8(ascii: "}")),
            bytes[(last + 1)...].allSatisfy({ isSpace($0) || ");".utf8.contains($0) }),
            let start = bytes.indices.first(where: { index in
                bytes[index] == UInt8(ascii: "{")
                    && bytes[(index + 1)...].first { !isSpace($0) } == UInt8(ascii: "\"")
            }), !MemberSalvage.isNamed(name, in: bytes[..<start])
        else { return nil }
        return (try? JSON(parsing: bytes[start...last]))?.object
    }
}

/// Extracts one member's text from a success that is not valid JSON: it was cut off, is followed by a debug message, or
/// has a member twice. For tokens that a provider has just created, which cannot be obtained again. Only an unambiguous
/// value is taken: a complete member of the outermost object that is followed by a comma, a brace or the end, after
/// well-formed text, and whose name does not occur again, not even in the part that cannot be parsed.
enum MemberSalvage {
    static func text(of name: String, in body: [UInt8]) -> String? {
        var scanner = Scanner(bytes: body, name: name)
        return scanner.member()
    }

    /// True if the quoted name occurs anywhere in the text, in any spelling. Compares bytes, because Swift treats a
    /// quote with a combining accent as one character.
    static func isNamed(_ name: String, in text: ArraySlice<UInt8>) -> Bool {
        let plain = unescaped(text)
        return ["\"", "'"].contains { quote in
            let quoted = Array("\(quote)\(name)\(quote)".utf8)
            return plain.indices.contains { plain[$0...].starts(with: quoted) }
        }
    }

    /// Replaces every `\uXXXX` of an ASCII character. Other escapes are not needed to write the name.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var plain: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let digits = text[index...].dropFirst(2).prefix(4)
            if text[index...].starts(with: "\\u".utf8), digits.count == 4,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16), value < 0x80
            {
                plain.append(value)
                index += 6
            } else {
                plain.append(text[index])
                index += 1
            }
        }
        return plain
    }

    /// Scans the bytes without building values, so depth and number of values are not limited.
    private struct Scanner {
        let bytes: [UInt8]
        let name: String
        var position = 0
        /// True if a comment contains the name.
        var isNamedInComment = false
        private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func member() -> String? {
            skipSpace()
            guard skip("{") else { return nil }
            var found: String?
            // The end of the text that was well-formed.
            var understood = position
            while let member = nextName() {
                let start = position
                guard skipValue() else { break }
                let end = position
                skipSpace()
                let isLast = current != UInt8(ascii: ",")
                guard !isLast || current == nil || current == UInt8(ascii: "}") else { break }
                if member == name {
                    guard let text = text(start..<end), found == nil || found == text else { return nil }
                    found = text
                }
                understood = position
                guard !isLast else { break }
                position += 1
            }
            return isNamedInComment || MemberSalvage.isNamed(name, in: bytes[understood...]) ? nil : found
        }

        /// Reads a member's name and the colon after it.
        private mutating func nextName() -> String? {
            skipSpace()
            let start = position
            guard skipString() else { return nil }
            let name = text(start..<position)
            skipSpace()
            guard skip(":") else { return nil }
            skipSpace()
            return name
        }

        /// Nil if the bytes are no well-formed string. One in single quotes must need no escapes.
        private func text(_ range: Range<Int>) -> String? {
            guard bytes[range].first == UInt8(ascii: "'") else { return (try? JSON(parsing: bytes[range]))?.string }
            let inside = bytes[range].dropFirst().dropLast()
            guard !inside.contains(where: { "\"\\".utf8.contains($0) }) else { return nil }
            return String(validating: inside, as: UTF8.self)
        }

        /// Also skips comments as in JavaScript.
        private mutating func skipSpace() {
            while let byte = current {
                let start = position
                if [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
                    position += 1
                    continue
                } else if bytes[position...].starts(with: "//".utf8) {
                    while let byte = current, byte != 0x0A { position += 1 }
                } else if bytes[position...].starts(with: "/*".utf8) {
                    position += 2
                    while position < bytes.count, !bytes[position...].starts(with: "*/".utf8) { position += 1 }
                    position = min(position + 2, bytes.count)
                } else {
                    return
                }
                if MemberSalvage.isNamed(name, in: bytes[start..<position]) { isNamedInComment = true }
            }
        }

        private mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard current == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        /// False at the end of the text; the position is then undefined.
        private mutating func skipString() -> Bool {
            guard let quote = current, "\"'".utf8.contains(quote) else { return false }
            position += 1
            while let byte = current {
                position += byte == UInt8(ascii: "\\") ? 2 : 1
                if byte == quote { return true }
            }
            return false
        }

        private mutating func skipValue() -> Bool {
            switch current {
            case UInt8(ascii: "\"")?, UInt8(ascii: "'")?: return skipString()
            case UInt8(ascii: "{")?, UInt8(ascii: "[")?: return skipContainer()
            default:
                let start = position
                while let byte = current, isWord(byte) { position += 1 }
                return position > start
            }
        }

        /// Brackets that do not match end the scan: a name after them could belong to the outermost object.
        private mutating func skipContainer() -> Bool {
            var open: [UInt8] = []
            while let byte = current {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "'"):
                    guard skipString() else { return false }
                    continue
                case UInt8(ascii: "{"): open.append(UInt8(ascii: "}"))
                case UInt8(ascii: "["): open.append(UInt8(ascii: "]"))
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    guard open.popLast() == byte else { return false }
                default: break
                }
                position += 1
                if open.isEmpty { return true }
            }
            return false
        }

        /// The characters of numbers and words, including `NaN`.
        private func isWord(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
            default: false
            }
        }
    }
}
