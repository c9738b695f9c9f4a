import HTTPMessages
import Secrets
import StrictJSON

/// Gets a refresh token out of a successful answer that is not JSON as we accept it: cut off on the way, followed by a
/// debug message, with a member twice; or a form that was cut off. The provider may have rotated by then, and the token
/// before is dead.
///
/// Only what the answer certainly says is taken: a member of the outermost object, whole, followed by a comma, a brace
/// or the end, reached over well-formed text, and not there twice, not even in the part that cannot be read.
enum RefreshTokenSalvage {
    /// Nil without such a token.
    static func token(in response: HTTPResponse) -> Secret? {
        guard AnswerReader.isForm(response) else { return token(in: response.body) }
        // A form that came whole and cannot be read is none: it has no other sign of where it went wrong.
        return response.isTruncated ? formToken(in: response.body) : nil
    }

    /// Of a form that was cut off: only what is followed by a separator is whole.
    private static func formToken(in body: Secret) -> Secret? {
        let bytes = body.revealedBytes()
        guard let end = bytes.lastIndex(of: UInt8(ascii: "&")), let pairs = try? FormEncoding.parse(bytes[..<end])
        else { return nil }
        let values = pairs.filter { $0.name == name }.map(\.value)
        return values.count == 1 ? TokenText.secret(values[0], allowsSpace: true) : nil
    }

    private static let name = "refresh_token"

    /// Of what should be JSON.
    static func token(in body: Secret) -> Secret? {
        var scanner = Scanner(bytes: body.revealedBytes())
        return TokenText.secret(scanner.refreshToken(), allowsSpace: true)
    }

    /// Reads members by their bytes alone and holds nothing of them but the brackets that are open: no depth and no number
    /// of values is too much.
    private struct Scanner {
        private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let bytes: [UInt8]
        var position = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func refreshToken() -> String? {
            if bytes.starts(with: Scanner.mark) { position = Scanner.mark.count }
            skipSpace()
            guard skip("{") else { return nil }
            var found: String?
            // How far the text was read and made sense.
            var understood = position
            while let name = nextName() {
                let start = position
                guard skipValue() else { break }
                let end = position
                skipSpace()
                let isLast = current != UInt8(ascii: ",")
                guard !isLast || current == nil || current == UInt8(ascii: "}") else { break }
                if name == RefreshTokenSalvage.name {
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

        /// True if the name stands anywhere in the rest. By bytes: a quote with an accent on it is another character.
        private func isNamed(from start: Int) -> Bool {
            let name = Array("\"\(RefreshTokenSalvage.name)\"".utf8)
            return bytes[start...].indices.contains { bytes[$0...].starts(with: name) }
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
