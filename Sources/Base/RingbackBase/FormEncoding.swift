/// `application/x-www-form-urlencoded` and URL queries (WHATWG URL section 5, RFC 6749 appendix B), read strictly.
public enum FormEncoding {
    public struct Pair: Sendable, Equatable {
        public let name: String
        public let value: String
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Why a form is rejected.
    public enum Failure: Error, Equatable, Sendable {
        /// `%` without two hexadecimal digits, an encoded NUL, bytes outside the URL alphabet, or not UTF-8.
        case malformed
        /// More than `maxPairs`.
        case tooMany
    }

    /// Keeps order and duplicates, so that the caller can reject a repeated parameter. Throws ``Failure`` for a
    /// malformed form or too many pairs. `needed` are the parameters that must be well-formed; nil for all. In others
    /// an invalid escape stands for itself, and bytes that are not UTF-8 are read as Latin-1.
    public static func parse(
        _ text: some Sequence<UInt8>, maxPairs: Int = 100, needed: Set<String>? = nil
    ) throws(Failure) -> [Pair] {
        var pairs: [Pair] = []
        let bytes = Array(text)
        guard !bytes.isEmpty else { return [] }
        for piece in bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: true) {
            guard pairs.count < maxPairs else { throw .tooMany }
            let equals = piece.firstIndex(of: UInt8(ascii: "="))
            let name = try decode(piece[piece.startIndex..<(equals ?? piece.endIndex)], isNeeded: needed == nil)
            let value = try equals.map { index throws(Failure) in
                try decode(piece[(index + 1)...], isNeeded: needed?.contains(name) ?? true)
            }
            pairs.append(Pair(name, value ?? ""))
        }
        return pairs
    }

    private static func decode(_ piece: ArraySlice<UInt8>, isNeeded: Bool) throws(Failure) -> String {
        do throws(Failure) {
            return try decode(piece)
        } catch {
            guard !isNeeded else { throw error }
            return repaired(piece)
        }
    }

    private static func repaired(_ piece: ArraySlice<UInt8>) -> String {
        var output: [UInt8] = []
        var rest = piece
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).compactMap(\.hexValue)
            if byte == UInt8(ascii: "%"), digits.count == 2, digits != [0, 0] {
                output.append(digits[0] << 4 | digits[1])
                rest = rest.dropFirst(2)
            } else {
                output.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return String(validating: output, as: UTF8.self)
            ?? String(String.UnicodeScalarView(output.map { Unicode.Scalar($0) }))
    }

    /// Escapes the characters of query and fragment that browsers do not escape there, or that a copied text has in
    /// place of their escapes.
    public static func escapingQuery(of url: String) -> String {
        guard let mark = url.utf8.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else {
            return url
        }
        let query = url.utf8[mark...].map { byte in
            byte > 0x7F || "\"<>\\^`{|}".utf8.contains(byte) ? byte.percentEscape : [byte]
        }
        return String(url[..<mark]) + String(decoding: query.joined(), as: UTF8.self)
    }

    public static func parse(_ text: some StringProtocol, maxPairs: Int = 100) throws(Failure) -> [Pair] {
        try parse(Array(text.utf8), maxPairs: maxPairs)
    }

    /// Everything but the unreserved characters of RFC 3986 is escaped. A space is `+` in a form and `%20` in a query.
    public static func encode(_ pairs: [(String, String)], spaceAsPlus: Bool = false) -> String {
        pairs.map { "\(escape($0.0, spaceAsPlus: spaceAsPlus))=\(escape($0.1, spaceAsPlus: spaceAsPlus))" }
            .joined(separator: "&")
    }

    public static func escape(_ text: String, spaceAsPlus: Bool = false) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if byte.isUnreserved {
                output.append(byte)
            } else if byte == 0x20, spaceAsPlus {
                output.append(UInt8(ascii: "+"))
            } else {
                output += byte.percentEscape
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func decode(_ piece: ArraySlice<UInt8>) throws(Failure) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(piece.count)
        var rest = piece
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): output.append(0x20)
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue, high | low != 0 else {
                    throw .malformed
                }
                output.append(high << 4 | low)
            case 0...0x20, 0x7F...0xFF: throw .malformed
            default: output.append(byte)
            }
        }
        guard let text = String(validating: output, as: UTF8.self) else { throw .malformed }
        return text
    }
}
