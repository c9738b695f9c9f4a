/// Reads the four kinds of strings (TOML 1.0.0, section "String"). Each method starts at the opening quotation mark and
/// ends after the closing one.
extension TOMLReader {
    /// Reads `"text"` with escapes, on one line.
    mutating func readBasicString() throws(Failure) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text += try readEscape()
            default:
                try check(inLine: byte)
                text.append(byte)
            }
        }
        throw failure("a string lacks its closing quotation mark")
    }

    /// Reads `'text'` without escapes, on one line.
    mutating func readLiteralString() throws(Failure) -> String {
        position += 1
        let start = position
        while let byte = current {
            position += 1
            if byte == UInt8(ascii: "'") { return String(decoding: bytes[start..<position - 1], as: UTF8.self) }
            try check(inLine: byte)
        }
        throw failure("a string lacks its closing quotation mark")
    }

    /// Reads `"""text"""` with escapes, over several lines.
    mutating func readLongBasicString() throws(Failure) -> String {
        position += 3
        skipFirstLineEnd()
        var text: [UInt8] = []
        while let byte = current {
            if isBeforeThree(UInt8(ascii: "\"")) { return close(UInt8(ascii: "\""), text) }
            position += 1
            if byte == UInt8(ascii: "\\") {
                if !skipEscapedLineEnd() { text += try readEscape() }
            } else {
                try take(long: byte, into: &text)
            }
        }
        throw failure("a string lacks its three closing quotation marks")
    }

    /// Reads `'''text'''` without escapes, over several lines.
    mutating func readLongLiteralString() throws(Failure) -> String {
        position += 3
        skipFirstLineEnd()
        var text: [UInt8] = []
        while let byte = current {
            if isBeforeThree(UInt8(ascii: "'")) { return close(UInt8(ascii: "'"), text) }
            position += 1
            try take(long: byte, into: &text)
        }
        throw failure("a string lacks its three closing quotation marks")
    }

    /// Up to two quotation marks before the three closing ones belong to the string.
    private mutating func close(_ mark: UInt8, _ text: [UInt8]) -> String {
        var text = text
        position += 3
        for _ in 0..<2 where take(mark) { text.append(mark) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Skips a line end directly after the opening marks.
    private mutating func skipFirstLineEnd() {
        if isBeforeCRLF { position += 1 }
        if take(0x0A) { line += 1 }
    }

    private func check(inLine byte: UInt8) throws(Failure) {
        guard byte != 0x0A, byte != 0x0D else {
            throw failure("a string lacks its closing quotation mark in this line")
        }
        try check(character: byte)
    }

    private mutating func take(long byte: UInt8, into text: inout [UInt8]) throws(Failure) {
        switch byte {
        case 0x0A:
            line += 1
            text.append(byte)
        case 0x0D:
            // CRLF becomes a line feed, so that the value does not depend on the editor.
            guard current == 0x0A else { throw failure("a control character is not allowed") }
        default:
            try check(character: byte)
            text.append(byte)
        }
    }

    /// Skips a backslash at the end of a line, the line end and the white space after it.
    private mutating func skipEscapedLineEnd() -> Bool {
        var end = position
        while end < bytes.count, bytes[end] == 0x20 || bytes[end] == 0x09 { end += 1 }
        if end < bytes.count, bytes[end] == 0x0D { end += 1 }
        guard end < bytes.count, bytes[end] == 0x0A else { return false }
        position = end
        while let byte = current {
            if byte == 0x0A { line += 1 } else if isBeforeCRLF {} else if byte != 0x20, byte != 0x09 { break }
            position += 1
        }
        return true
    }

    /// Reads what follows a backslash.
    private mutating func readEscape() throws(Failure) -> [UInt8] {
        guard let byte = current else { throw failure("a string lacks its closing quotation mark") }
        position += 1
        switch byte {
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return [byte]
        case UInt8(ascii: "u"): return try readScalar(digits: 4)
        case UInt8(ascii: "U"): return try readScalar(digits: 8)
        default: throw failure("a backslash in a string must begin an escape; for a plain one write \\\\, or use '…'")
        }
    }

    private mutating func readScalar(digits: Int) throws(Failure) -> [UInt8] {
        let end = position + digits
        guard end <= bytes.count else { throw failure("a string lacks its closing quotation mark") }
        let text = bytes[position..<end]
        let isHexadecimal = text.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
            default: false
            }
        }
        guard isHexadecimal, let value = UInt32(String(decoding: text, as: UTF8.self), radix: 16),
            let scalar = Unicode.Scalar(value)
        else { throw failure("an escape \\u needs 4 hexadecimal digits, \\U 8, of a Unicode scalar value") }
        // No value may contain NUL, because C functions would cut the text there.
        guard value != 0 else { throw failure("a NUL character is not allowed") }
        position = end
        return Array(String(scalar).utf8)
    }
}
