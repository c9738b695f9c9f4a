internal import StrictJSON

/// One line of the audit log: compact JSON in ASCII, but for letters and signs that a terminal shows as they are.
///
/// Names of programs and control groups are other people's text. JSON alone would let through what turns a line around
/// (bidi controls), hides in it, or ends it (U+2028): that is written as an escape, and read back unchanged.
enum AuditLine {
    /// The bytes of a line, its end included.
    static func bytes(of entry: JSONObject) -> [UInt8] {
        var output: [UInt8] = []
        let text = JSON.object(entry).serialized()
        output.reserveCapacity(text.count + 1)
        // What is not ASCII stands inside a string, always: JSON's own signs are ASCII.
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            if scalar.isASCII || isPlain(scalar) {
                output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            } else {
                for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter { escape(unit, to: &output) }
            }
        }
        output.append(UInt8(ascii: "\n"))
        return output
    }

    /// The entry of a line; nil for what is none: a line that a crash cut, or somebody's note.
    static func entry(of line: ArraySlice<UInt8>) -> JSONObject? {
        guard line.first == UInt8(ascii: "{"), line.count <= maxLength else { return nil }
        return (try? JSON(parsing: line, maxDepth: 4, maxValues: 64))?.object
    }

    /// Longer lines are none of ours.
    private static let maxLength = 32_768

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            return false
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    private static func escape(_ unit: UInt16, to output: inout [UInt8]) {
        let digits = String(unit, radix: 16)
        output.append(contentsOf: "\\u".utf8)
        output.append(contentsOf: String(repeating: "0", count: 4 - digits.utf8.count).utf8)
        output.append(contentsOf: digits.utf8)
    }
}
