import Secrets
import StrictJSON

/// Gets one member's text out of a successful answer that is not JSON as we accept it: cut off on the way, followed by a
/// debug message, with a member twice. For what exists nowhere else: a token that a provider has just made.
///
/// Only what the answer certainly says is taken: a member of the outermost object, whole, followed by a comma, a brace
/// or the end, reached over well-formed text, and not there twice, not even in the part that cannot be read.
enum MemberSalvage {
    /// Nil without such a member, or if it is no text.
    static func text(of name: String, in body: Secret) -> String? {
        var scanner = Scanner(bytes: body.revealedBytes(), name: name)
        return scanner.member()
    }

    /// Reads members by their bytes alone and holds nothing of them but the brackets that are open: no depth and no number
    /// of values is too much.
    private struct Scanner {
        private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let bytes: [UInt8]
        let name: String
        var position = 0

        init(bytes: [UInt8], name: String) {
            self.bytes = bytes
            self.name = name
        }

        private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func member() -> String? {
            if bytes.starts(with: Scanner.mark) { position = Scanner.mark.count }
            skipSpace()
            guard skip("{") else { return nil }
            var found: String?
            // How far the text was read and made sense.
            var understood = position
            while let member = nextName() {
                let start = position
                guard skipValue() else { break }
                let end = position
                skipSpace()
                let isLast = current != UInt8(ascii: ",")
                guard !isLast || current == nil || current == UInt8(ascii: "}") else { break }
                if member == name {
                    guard found == nil, let text = text(start..<end) else { return nil }
                    found = text
                }
                understood = position
                guard !isLast else { break }
                position += 1
            }
            return isNamed(from: understood) ? nil : found
        }

        /// A member's name and the colon after it.
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

        /// True if the name stands anywhere in the rest, however it is spelt. By bytes: a quote with an accent on it is
        /// another character.
        private func isNamed(from start: Int) -> Bool {
            let quoted = Array("\"\(name)\"".utf8)
            let rest = unescaped(bytes[start...])
            return rest.indices.contains { rest[$0...].starts(with: quoted) }
        }

        /// With every `\uXXXX` that means ASCII as what it means, be it in a string or not; nothing else of a name needs
        /// an escape.
        private func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
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

        /// The string that these bytes write; nil if they write another value or a broken one.
        private func text(_ range: Range<Int>) -> String? { (try? JSON(parsing: bytes[range]))?.string }

        private mutating func skipSpace() {
            while let byte = current, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
        }

        private mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard current == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        /// False at the end of the text; the position is then of no use.
        private mutating func skipString() -> Bool {
            guard skip("\"") else { return false }
            while let byte = current {
                position += byte == UInt8(ascii: "\\") ? 2 : 1
                if byte == UInt8(ascii: "\"") { return true }
            }
            return false
        }

        private mutating func skipValue() -> Bool {
            switch current {
            case UInt8(ascii: "\"")?: return skipString()
            case UInt8(ascii: "{")?, UInt8(ascii: "[")?: return skipContainer()
            default:
                let start = position
                while let byte = current, isWord(byte) { position += 1 }
                return position > start
            }
        }

        /// Brackets that do not pair end what is understood: a name behind them may be one of the outermost object.
        private mutating func skipContainer() -> Bool {
            var open: [UInt8] = []
            while let byte = current {
                switch byte {
                case UInt8(ascii: "\""):
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

        /// What numbers and words are written with, `NaN` included.
        private func isWord(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
            default: false
            }
        }
    }
}
