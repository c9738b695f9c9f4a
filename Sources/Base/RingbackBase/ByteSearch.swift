/// Streams and messages of many megabytes are searched for a few bytes, eight of them at a time: in a word whose bytes
/// are compared with one value, the highest bit of a byte says whether it is that value. Bytes above the first one that
/// is may be marked wrongly, so only the lowest mark counts.
public enum ByteSearch {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// The place of the first line feed or carriage return; the number of bytes if there is none.
    public static func lineEnd(in bytes: Span<UInt8>, from start: Int) -> Int {
        let raw = unsafe bytes.bytes
        var place = start
        while place + 8 <= raw.byteCount {
            let word = word(raw, at: place)
            let marks = zeros(word ^ (ones &* 10)) | zeros(word ^ (ones &* 13))
            if marks != 0 { return place + marks.trailingZeroBitCount / 8 }
            place += 8
        }
        while place < bytes.count, bytes[place] != 10, bytes[place] != 13 { place += 1 }
        return place
    }

    /// The place of the first byte that JSON escapes: a quotation mark, a backslash or a control character; else `end`.
    public static func textEnd(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
        let raw = unsafe bytes.bytes
        let end = min(end, raw.byteCount)
        var place = start
        while place + 8 <= end {
            let word = word(raw, at: place)
            let controls = (word &- (ones &* 0x20)) & ~word & tops
            let marks = controls | zeros(word ^ (ones &* 0x22)) | zeros(word ^ (ones &* 0x5C))
            if marks != 0 { return place + marks.trailingZeroBitCount / 8 }
            place += 8
        }
        while place < end, bytes[place] >= 0x20, bytes[place] != 0x22, bytes[place] != 0x5C { place += 1 }
        return place
    }

    public static func isASCII(_ bytes: Span<UInt8>) -> Bool {
        let raw = unsafe bytes.bytes
        var place = 0
        while place + 8 <= raw.byteCount {
            if word(raw, at: place) & tops != 0 { return false }
            place += 8
        }
        while place < bytes.count {
            if bytes[place] > 127 { return false }
            place += 1
        }
        return true
    }

    /// The first byte is the lowest. The caller has checked that they are there.
    private static func word(_ bytes: RawSpan, at place: Int) -> UInt64 {
        UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: UInt64.self))
    }

    /// Marks the bytes that are zero.
    private static func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & tops }
}

/// Classes of ASCII characters.
extension UInt8 {
    package var isDigit: Bool { (0x30...0x39).contains(self) }
    package var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
    package var isLetterOrDigit: Bool { isLetter || isDigit }
    /// An unreserved character (RFC 3986 section 2.3).
    package var isUnreserved: Bool { isLetterOrDigit || "-._~".utf8.contains(self) }

    /// The value of a hexadecimal digit; nil for another byte.
    package var hexValue: UInt8? {
        if isDigit { return self - 0x30 }
        return (0x61...0x66).contains(self | 0x20) ? (self | 0x20) - 0x61 + 10 : nil
    }

    /// `%XX` (RFC 3986 section 2.1).
    package var percentEscape: [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [UInt8(ascii: "%"), digits[Int(self >> 4)], digits[Int(self & 15)]]
    }
}

extension Unicode.Scalar {
    /// The character has no other effect than to be visible.
    package var isVisible: Bool {
        if isASCII { return (0x20..<0x7F).contains(value) }
        switch properties.generalCategory {
        // Controls; format characters (bidi controls, zero-width, tags); line ends; characters without a glyph.
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        // Spaces of unusual width.
        case .spaceSeparator: return false
        // Fillers, joiners and variation selectors have the category of letters or marks, but are invisible.
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }
}

extension String {
    /// `[a-z0-9][a-z0-9._-]{0,63}`
    package var isAccountName: Bool {
        func isFirst(_ byte: UInt8) -> Bool { byte.isDigit || (0x61...0x7A).contains(byte) }
        return utf8.count <= 64 && utf8.first.map(isFirst) == true
            && utf8.allSatisfy { isFirst($0) || "._-".utf8.contains($0) }
    }

    /// Of a variable of the environment (POSIX, Base Definitions section 3.231).
    package var isVariableName: Bool {
        utf8.first?.isDigit == false && utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") }
    }
}

/// Text of servers that do not send what RFC 8259 section 8.1 requires: UTF-8 without a byte order mark.
public enum UnicodeText {
    /// UTF-16 is known by its mark, or because one of the first two bytes is zero, which no JSON text and no form
    /// begins with. Other bytes are returned unchanged.
    public static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return Array(bytes.dropFirst(3)) }
        guard bytes.count >= 2 else { return bytes }
        switch (bytes[0], bytes[1]) {
        case (0xFE, 0xFF): return utf8(of: bytes.dropFirst(2), high: 0) ?? bytes
        case (0xFF, 0xFE): return utf8(of: bytes.dropFirst(2), high: 1) ?? bytes
        case (0, 1...): return utf8(of: bytes[...], high: 0) ?? bytes
        case (1..., 0): return utf8(of: bytes[...], high: 1) ?? bytes
        default: return bytes
        }
    }

    /// `high` is the place of a unit's high byte. A last byte without another one was cut off.
    private static func utf8(of bytes: ArraySlice<UInt8>, high: Int) -> [UInt8]? {
        let units = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
            UInt16(bytes[index + high]) << 8 | UInt16(bytes[index + 1 - high])
        }
        return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
    }
}

public enum Markup {
    /// For the content of an element, and with `quotes` for the value of an attribute.
    public static func escaped(_ text: String, quotes: Bool = true) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"" where quotes: escaped += "&quot;"
            case "'" where quotes: escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
