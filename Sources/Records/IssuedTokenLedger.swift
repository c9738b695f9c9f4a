internal import Synchronization

/// What happens on the way of a request: a lock, a look into a table, a number that grows. Everything that costs more
/// (who the program is, what is told of it and when) is done elsewhere, later, by whoever ``note(_:_:at:)`` asks to be
/// woken.
final class IssuedTokenLedger: Sendable {
    struct Key: Hashable, Sendable {
        let serial: UInt64
        let uid: UInt32
        let use: AuditUse
    }
    struct Row: Sendable {
        let caller: AuditCaller
        let use: AuditUse
        var tally: Tally
    }
    struct State {
        /// By process number: the caller, and the second in which it was looked at.
        var recent: [Int32: (caller: AuditCaller, second: Int)] = [:]
        var rows: [Key: Row] = [:]
        /// Rows that nobody has looked at yet.
        var fresh: [Key] = []
        var isWoken = false
        var serial: UInt64 = 0
        /// What came through restricted sockets, by socket and uid.
        var windows: [ExposedWindow.Place: ExposedWindow] = [:]
    }
    private let state = Mutex(State())

    /// Process numbers that are remembered.
    static let maxRecent = 4_096

    /// The caller of a new connection.
    ///
    /// A number that was seen within this second or the last one is taken for the same process: the kernel does not give
    /// a number away again so soon. After that it is looked at anew, so a later process is never taken for an earlier.
    /// Where the kernel tells processes apart, its word decides; without that each connection is looked at anew.
    func caller(uid: UInt32, pid: Int32, proof: ProcessProof? = nil, at now: Int) -> AuditCaller {
        let known = state.withLock { state -> AuditCaller? in
            guard let found = state.recent[pid], found.caller.uid == uid else { return nil }
            guard proof?.identity == found.caller.processIdentity, proof == nil || proof?.identity != nil else {
                return nil
            }
            return found.second == now || found.second == now - 1 ? found.caller : nil
        }
        if let known { return known }
        // The one call to the kernel, once a process and second or two; it waits for nothing.
        let executable = ProcessFacts.executable(of: pid)
        let isVerified = executable != nil && proof?.isAlive() == true
        return state.withLock { state in
            state.serial += 1
            let caller = AuditCaller(
                uid: uid, pid: pid, executable: executable, isVerified: isVerified, identity: proof?.identity,
                serial: state.serial)
            // A program that starts thousands of processes must not fill the memory.
            if state.recent.count >= IssuedTokenLedger.maxRecent { state.recent = [:] }
            state.recent[pid] = (caller, now)
            return caller
        }
    }

    /// Counts a use.
    ///
    /// - Returns: true if somebody has to be woken to look at ``takeFresh()``.
    func note(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        return state.withLock { state in
            var (caller, use) = (caller, use)
            if use.exposedSocket != nil, !state.tellsApart(caller, use, at: now) {
                caller = AuditCaller(unknownOf: caller.uid)
                use = use.withoutDetails
            }
            let key = Key(serial: caller.serial, uid: caller.uid, use: use)
            if let index = state.rows.index(forKey: key) {
                state.rows.values[index].tally.add(at: now)
                return false
            }
            state.rows[key] = Row(caller: caller, use: use, tally: Tally(count: 1, first: now, last: now))
            state.fresh.append(key)
            defer { state.isWoken = true }
            return !state.isWoken
        }
    }

    /// The rows that appeared since the last call, in order, as they stand.
    func fresh() -> [Row] {
        state.withLock { state in
            state.isWoken = false
            defer { state.fresh = [] }
            return state.fresh.compactMap { state.rows[$0] }
        }
    }

    /// So much of a row has been told.
    func settle(_ row: Row) {
        state.withLock { state in
            guard
                let index = state.rows.index(
                    forKey: Key(serial: row.caller.serial, uid: row.caller.uid, use: row.use))
            else { return }
            state.rows.values[index].tally.count -= row.tally.count
        }
    }

    /// Everything that was counted and not told, oldest caller first; the table is empty then.
    func takeAll() -> [Row] {
        let rows = state.withLock { state in
            defer {
                state.rows = [:]
                state.fresh = []
                state.recent = [:]
            }
            return state.rows.values.filter { $0.tally.count > 0 }
        }
        return rows.sorted { ($0.tally.first, $0.caller.serial) < ($1.tally.first, $1.caller.serial) }
    }

    /// How many rows there are.
    var count: Int { state.withLock { $0.rows.count } }
}
