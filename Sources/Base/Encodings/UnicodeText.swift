/// Text of servers that do not send what RFC 8259 section 8.1 requires: UTF-8 without a byte order mark.
public enum UnicodeText {
    /// The bytes as UTF-8 without a byte order mark. UTF-16 is known by its mark, or because one of the first two bytes
    /// is zero, which no JSON text and no form begins with. Other bytes are returned unchanged.
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
