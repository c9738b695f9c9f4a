internal import StrictJSON

/// One line of the audit log: compact JSON in ASCII, but for letters and signs that a terminal shows as they are.
///
/// Names of programs and control groups are other people's text. JSON alone would let through what turns a line around
/// (bidi controls), hides in it, or ends it (U+2028): that is written as an escape, and read back unchanged.
enum AuditLine {
    /// The bytes of a line, its end included.
    static func bytes(of entry: JSONObject) -> [UInt8] {
        Array(JSON.object(entry).visibleText.utf8) + [UInt8(ascii: "\n")]
    }

    /// The entry of a line; nil for what is none: a line that a crash cut, or somebody's note.
    static func entry(of line: ArraySlice<UInt8>) -> JSONObject? {
        guard line.first == UInt8(ascii: "{"), line.count <= maxLength else { return nil }
        return (try? JSON(parsing: line, maxDepth: 4, maxValues: 64))?.object
    }

    /// Longer lines are none of ours.
    private static let maxLength = 32_768
}
