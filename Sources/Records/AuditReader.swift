internal import StrictJSON

/// Reads the audit log back. What is no entry (a line that a crash cut, or somebody's note) is passed over.
enum AuditReader {
    /// The newest entries that fit, oldest first.
    static func entries(in bytes: [UInt8], since: Int?, account: String?, limit: Int) -> [JSON] {
        var found: [JSON] = []
        var end = bytes.endIndex
        while found.count < limit, end > bytes.startIndex {
            let newline = bytes[..<end].lastIndex(of: UInt8(ascii: "\n"))
            let start = newline.map { $0 + 1 } ?? bytes.startIndex
            if let entry = AuditLine.entry(of: bytes[start..<end]), isWanted(entry, since, account) {
                found.append(.object(entry))
            }
            end = newline ?? bytes.startIndex
        }
        return found.reversed()
    }

    /// A line about several times counts by its last one. A clock may have been set back: lines are not in order of it.
    private static func isWanted(_ entry: JSONObject, _ since: Int?, _ account: String?) -> Bool {
        guard let at = entry["last"]?.integer ?? entry["at"]?.integer, entry["event"]?.string != nil else {
            return false
        }
        if let since, at < since { return false }
        return account == nil || entry["account"]?.string == account
    }
}
