internal import StrictJSON

/// One line of the audit log: compact JSON without characters that a terminal does not show as they are.
///
/// Names of programs and control groups are chosen by others. Bidi controls, invisible characters and U+2028 are valid
/// in JSON and could falsify what a terminal shows. They are written as escapes.
enum AuditLine {
    /// The line in bytes, with its line end.
    static func bytes(of entry: JSONObject) -> [UInt8] {
        Array(JSON.object(entry).visibleText.utf8) + [UInt8(ascii: "\n")]
    }

    /// The entry of a line. Nil for a line that is no entry, for example one that a crash cut off.
    static func entry(of line: ArraySlice<UInt8>) -> JSONObject? {
        guard line.first == UInt8(ascii: "{"), line.count <= maxLength else { return nil }
        return (try? JSON(parsing: line, maxDepth: 4, maxValues: 64))?.object
    }

    /// The maximum length of a line in bytes; longer ones are ignored.
    private static let maxLength = 32_768
}
