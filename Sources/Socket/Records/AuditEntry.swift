internal import Glibc
internal import RingbackBase
internal import Synchronization

extension AuditLog {
    /// From now on each line names this host, by its name among the hosts that share a vault, as far as it is known.
    public func setHost(_ name: @escaping @Sendable () -> String?) { host.withLock { $0 = name } }

    static func entry(_ event: String, at now: Int, _ members: JSONObject) -> JSONObject {
        let head: JSONObject = ["time": now, "time_text": Timestamp.text(of: now), "event": event]
        return JSONObject(head.members + members.members)
    }

    static func entry(_ use: AuditUse, _ tally: Tally, _ identity: CallerIdentity) -> JSONObject {
        let program = identity.program
        // Uses of several processes that are counted together have no pid.
        let isAggregated = program.pid < 0
        let members: JSONObject = [
            "account": use.account, "operation": use.operation, "route": use.route, "scope": use.scope,
            "audience": use.audience, "resource": use.resource, "origin": use.origin, "tool": use.tool,
            "exposed_socket": use.exposedSocket, "uid": Int(program.uid),
            "pid": isAggregated ? nil : Int(program.pid), "aggregated": isAggregated ? true : nil,
            "executable": program.executable, "unit": identity.unit, "verified": program.isVerified,
            "program": isAggregated ? nil : identity.calling.identity.text, "count": tally.count, "first": tally.first,
            "last": tally.last,
        ]
        return entry(use.kind.rawValue, at: tally.last, members)
    }
}

extension AuditFile.Failure: CustomStringConvertible {
    var description: String { "\(call): \(unsafe String(cString: strerror(errno)))" }
}

/// One line of the audit log: compact JSON. Others choose the names of programs and control groups: bidi controls,
/// invisible characters and U+2028, which could falsify what a terminal shows, are written as escapes.
enum AuditLine {
    static func bytes(of entry: JSONObject) -> [UInt8] {
        Array(JSON.object(entry).visibleText.utf8) + [UInt8(ascii: "\n")]
    }

    /// The entry of a line. Nil for a line that is no entry, for example one that a crash cut off.
    static func entry(of line: ArraySlice<UInt8>) -> JSONObject? {
        guard line.first == UInt8(ascii: "{"), line.count <= maxLength else { return nil }
        return (try? JSON(parsing: line, maxDepth: 4, maxValues: 64))?.object
    }
    private static let maxLength = 32_768
}

/// Reads the audit log. Lines that are no entries are skipped.
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

    /// The entries in order of time: in the file, counted uses stand later than other events.
    static func byTime(_ entries: [JSON]) -> [JSON] {
        let keyed = entries.enumerated().map { (at: instant($1.object ?? JSONObject()) ?? 0, place: $0, entry: $1) }
        return keyed.sorted { ($0.at, $0.place) < ($1.at, $1.place) }.map(\.entry)
    }

    static func newest(_ limit: Int, of entries: [JSON]) -> AuditLog.Entries {
        (byTime(entries).suffix(limit), entries.count > limit)
    }

    /// The entry's time in Unix seconds: of its last use, if it counts several.
    private static func instant(_ entry: JSONObject) -> Int? { entry["last"]?.integer ?? entry["time"]?.integer }

    /// True if an entry matches. An entry that is too old does not end the search, because the lines are not ordered by
    /// time: counted uses are written later than other events, and the clock may have been set back.
    private static func isWanted(_ entry: JSONObject, _ since: Int?, _ account: String?) -> Bool {
        guard let at = instant(entry), entry["event"]?.string != nil else { return false }
        if let since, at < since { return false }
        return account == nil || entry["account"]?.string == account
    }
}
