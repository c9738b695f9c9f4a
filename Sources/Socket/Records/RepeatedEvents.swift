internal import StrictJSON

// Attack: a program at a restricted socket sends what is denied again and again, and fills the log. So equal events are
// counted, and only so many different ones of a socket are told apart.

/// Counts events that are equal, or are too many of one socket.
struct RepeatedEvents {
    /// An event that has to be written.
    struct Entry: Equatable {
        let event: String
        var members: JSONObject
        let socket: String
    }

    private struct Kind {
        let entry: Entry
        /// When its last line was written, in Unix seconds.
        var start: Int
        /// How many came since then.
        var count = 0
    }

    /// The number of different events of one socket that are told apart in one window.
    static let capacity = 16
    /// The number of sockets whose events are remembered.
    private static let mostSockets = 1_024

    /// The length of a window in seconds.
    private let length: Int
    private var kinds: [String: [String: Kind]] = [:]

    init(length: Int) { self.length = length }

    /// Takes an event. The first of its kind is written at once, and what comes within the window is counted.
    ///
    /// - Parameters:
    ///   - common: the members that stay where the socket has too many different events. They should be few.
    ///   - now: in Unix seconds.
    /// - Returns: what is to be written now, if anything.
    mutating func note(_ entry: Entry, common: JSONObject, at now: Int) -> Entry? {
        if kinds.count >= RepeatedEvents.mostSockets, kinds[entry.socket] == nil { kinds = [:] }
        var known = kinds[entry.socket] ?? [:]
        defer { kinds[entry.socket] = known }
        // A window is also over if the clock was set back.
        known = known.filter { $0.value.count > 0 || ($0.value.start...($0.value.start + length)).contains(now) }
        let own = RepeatedEvents.key(entry)
        if known[own] != nil || known.count < RepeatedEvents.capacity {
            return RepeatedEvents.count(entry, own, &known, at: now)
        }
        var together = Entry(event: entry.event, members: common, socket: entry.socket)
        together.members["aggregated"] = true
        return RepeatedEvents.count(together, RepeatedEvents.key(together), &known, at: now)
    }

    /// What was counted since the last call, a line for each kind.
    mutating func takeAll(at now: Int) -> [Entry] {
        var entries: [Entry] = []
        for (socket, known) in kinds {
            for (key, kind) in known where kind.count > 0 {
                var entry = kind.entry
                entry.members["count"] = .integer(kind.count)
                entries.append(entry)
                kinds[socket]?[key]?.count = 0
                kinds[socket]?[key]?.start = now
            }
        }
        return entries.sorted { RepeatedEvents.key($0) < RepeatedEvents.key($1) }
    }

    private static func count(
        _ entry: Entry, _ key: String, _ known: inout [String: Kind], at now: Int
    ) -> Entry? {
        guard known[key] != nil else {
            known[key] = Kind(entry: entry, start: now)
            return entry
        }
        known[key]?.count += 1
        return nil
    }

    private static func key(_ entry: Entry) -> String { entry.event + " " + JSON.object(entry.members).text }
}
