internal import RingbackBase
internal import Synchronization

/// Counts events that are equal, or are too many of one socket. Attack: a program at a restricted socket sends what is
/// denied again and again, and fills the log. So only so many different events of a socket are told apart.
struct RepeatedEvents {
    struct Entry: Equatable {
        let event: String
        var members: JSONObject
        let socket: String
    }

    private struct Kind {
        let entry: Entry
        /// When its last line was written, in Unix seconds.
        var start: Int
        var count = 0
    }

    static let capacity = 16
    private static let mostSockets = 1_024
    /// Of a window, in seconds.
    private let length: Int
    private var kinds: [String: [String: Kind]] = [:]
    init(length: Int) { self.length = length }

    /// Takes an event; `now` is in Unix seconds. Returns what is written now: the first of its kind in a window. Of too
    /// many different events of a socket only the `common` members stay.
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

    private static func count(_ entry: Entry, _ key: String, _ known: inout [String: Kind], at now: Int) -> Entry? {
        guard known[key] != nil else {
            known[key] = Kind(entry: entry, start: now)
            return entry
        }
        known[key]?.count += 1
        return nil
    }

    private static func key(_ entry: Entry) -> String { entry.event + " " + JSON.object(entry.members).text }
}

/// The count of one use by one caller. A connection keeps it, so that a repetition takes one lock and no look-up.
public final class CountedUse: Sendable {
    let caller: AuditCaller
    let use: AuditUse
    /// Nil after the count was handed over for writing. The next use begins a new count.
    private let tally: Mutex<Tally?>

    init(_ caller: AuditCaller, _ use: AuditUse, at now: Int) {
        self.caller = caller
        self.use = use
        tally = Mutex(Tally(count: 1, first: now, last: now))
    }

    /// Counts a repetition, in Unix seconds. False if the count has been taken: see ``AuditLog/note(_:_:at:)``.
    public func add(at now: Int) -> Bool {
        tally.withLock { tally in
            tally?.add(at: now)
            return tally != nil
        }
    }

    var row: IssuedTokenLedger.Row? {
        tally.withLock { $0 }.map { IssuedTokenLedger.Row(caller: caller, use: use, tally: $0) }
    }

    func subtract(_ count: Int) {
        tally.withLock { tally in
            guard tally != nil else { return }
            tally?.count -= count
        }
    }

    func take() -> IssuedTokenLedger.Row? {
        let last = tally.withLock { tally in
            defer { tally = nil }
            return tally
        }
        guard let last, last.count > 0 else { return nil }
        return IssuedTokenLedger.Row(caller: caller, use: use, tally: last)
    }
}

/// Limits how many programs at a restricted socket are told apart, by socket and uid; beyond that, uses are counted
/// together. Attack: a program starts a process for each request, or requests another scope each time.
struct ExposedWindow {
    struct Place: Hashable {
        let socket: String
        let uid: UInt32
    }
    private struct Entry: Hashable {
        let pid: Int32
        let use: AuditUse
    }
    private var start: Int
    private var entries: Set<Entry> = []
    static let capacity = 16
    /// Seconds.
    static let length = 60
    init(at now: Int) { start = now }

    mutating func countsSeparately(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        // A new window also begins if the clock was set back.
        if now < start || now - start >= ExposedWindow.length { self = ExposedWindow(at: now) }
        let entry = Entry(pid: caller.pid, use: use)
        guard entries.count >= ExposedWindow.capacity else {
            entries.insert(entry)
            return true
        }
        return entries.contains(entry)
    }
}

extension IssuedTokenLedger.State {
    mutating func countsSeparately(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        let place = ExposedWindow.Place(socket: use.exposedSocket ?? "", uid: caller.uid)
        // Sockets come and go. Dropping all windows bounds the memory; each would end within a minute anyway.
        if windows.count >= 1_024 { windows = [:] }
        return windows[place, default: ExposedWindow(at: now)].countsSeparately(caller, use, at: now)
    }
}

/// The uses that are in the audit log already, so that repetitions are counted instead. Used on one queue only.
struct RecordedUses: Sendable {
    private struct Entry: Hashable {
        let program: CallerIdentity.Program
        let use: AuditUse
    }

    private var told: Set<Entry> = []
    private let maxSize: Int

    /// Beyond `maxSize` uses those of ended processes are forgotten, or all: a forgotten use is written again.
    init(maxSize: Int = 4_096) { self.maxSize = maxSize }

    /// True the first time for this program and use.
    mutating func insert(_ use: AuditUse, of program: CallerIdentity.Program) -> Bool {
        if told.count >= maxSize { forget() }
        return told.insert(Entry(program: program, use: use)).inserted
    }

    private mutating func forget() {
        var alive: [Int32: UInt64?] = [:]
        for entry in told where alive[entry.program.pid] == nil {
            alive[entry.program.pid] = ProcessFacts.startTime(of: entry.program.pid)
        }
        told = told.filter { $0.program.startTime != nil && alive[$0.program.pid] == $0.program.startTime }
        if told.count > maxSize / 2 { told = [] }
    }
}
