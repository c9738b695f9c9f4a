internal import StrictJSON

/// Reads the audit log. Lines that are no entries, for example one that a crash cut off, are skipped.
enum AuditReader {
    /// The last `limit` matching entries of a file, in the order in which they were written.
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

    /// The entries in order of time. The order in the file differs, because counted uses are written later than other
    /// events.
    static func byTime(_ entries: [JSON]) -> [JSON] {
        let keyed = entries.enumerated().map { (at: instant($1.object ?? JSONObject()) ?? 0, place: $0, entry: $1) }
        return keyed.sorted { ($0.at, $0.place) < ($1.at, $1.place) }.map(\.entry)
    }

    /// The newest entries of several files.
    static func newest(_ limit: Int, of entries: [JSON]) -> AuditLog.Entries {
        AuditLog.Entries(entries: byTime(entries).suffix(limit), isTruncated: entries.count > limit)
    }

    /// The entry's time in Unix seconds: of its last use, if it counts several.
    private static func instant(_ entry: JSONObject) -> Int? { entry["last"]?.integer ?? entry["time"]?.integer }

    /// True if an entry matches. An entry that is too old does not end the search, because the lines are not ordered by
    /// time: counted uses are written later than other events, and the clock may have been set back.
    private static func isWanted(_ entry: JSONObject, _ since: Int?, _ account: String?) -> Bool {
        guard let at = instant(entry), entry["event"]?.string != nil else {
            return false
        }
        if let since, at < since { return false }
        return account == nil || entry["account"]?.string == account
    }
}
