internal import StrictJSON

/// Reads the audit log back. What is no entry (a line that a crash cut, or somebody's note) is passed over.
enum AuditReader {
    /// The entries that were written last and fit, in the order in which they were written.
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

    /// The same in the order of time: what is counted for a while is written after what happened meanwhile.
    static func byTime(_ entries: [JSON]) -> [JSON] {
        let keyed = entries.enumerated().map { (at: instant($1.object ?? JSONObject()) ?? 0, place: $0, entry: $1) }
        return keyed.sorted { ($0.at, $0.place) < ($1.at, $1.place) }.map(\.entry)
    }

    /// The newest of several files' entries.
    static func newest(_ limit: Int, of entries: [JSON]) -> AuditLog.Entries {
        AuditLog.Entries(entries: byTime(entries).suffix(limit), isTruncated: entries.count > limit)
    }

    /// Unix seconds.
    private static func instant(_ entry: JSONObject) -> Int? { entry["last"]?.integer ?? entry["time"]?.integer }

    /// A line about several times counts by its last one. A clock may have been set back: lines are not in order of it.
    private static func isWanted(_ entry: JSONObject, _ since: Int?, _ account: String?) -> Bool {
        guard let at = instant(entry), entry["event"]?.string != nil else {
            return false
        }
        if let since, at < since { return false }
        return account == nil || entry["account"]?.string == account
    }
}
