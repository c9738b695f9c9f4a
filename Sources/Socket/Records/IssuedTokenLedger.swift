internal import Synchronization

/// Counts uses within a request: a lock, a look-up and a number. Everything slower happens on the queue of the log.
final class IssuedTokenLedger: Sendable {
    struct Key: Hashable, Sendable {
        let serial: UInt64
        let uid: UInt32
        let use: AuditUse
    }
    struct Row: Sendable {
        let caller: AuditCaller
        let use: AuditUse
        let tally: Tally
    }
    struct State {
        /// By process id: the caller, and the second (Unix time) in which its executable was read.
        var recent: [Int32: (caller: AuditCaller, second: Int)] = [:]
        /// With so many, those that are too old to be taken are dropped.
        var mostRecent = IssuedTokenLedger.fewRecent
        var rows: [Key: CountedUse] = [:]
        var fresh: [Key] = []
        var isWoken = false
        var serial: UInt64 = 0
        var windows: [ExposedWindow.Place: ExposedWindow] = [:]
    }
    private let state = Mutex(State())
    static let maxRecent = 4_096
    static let fewRecent = 64

    /// The caller of a new connection. A process id that was seen in this or the previous second is taken for the same
    /// process, because the kernel does not reuse an id so soon. If the kernel proves which process it is, its identity
    /// decides; if it proves the process without an identity, each connection is looked up again.
    ///
    /// Race: a process may connect, run another program by `exec` and connect again. Its executable is therefore read
    /// for each connection. It is verified only if the process was alive after that.
    func caller(uid: UInt32, pid: Int32, proof: ProcessProof? = nil, at now: Int) -> AuditCaller {
        let known = state.withLock { state -> AuditCaller? in
            guard let found = state.recent[pid], found.caller.uid == uid else { return nil }
            guard proof?.identity == found.caller.processIdentity, proof == nil || proof?.identity != nil else {
                return nil
            }
            return found.second == now || found.second == now - 1 ? found.caller : nil
        }
        if let known, known.link.isCurrent, !known.isVerified || proof?.isAlive() == true { return known }
        let serial = state.withLock { state in
            state.serial += 1
            return state.serial
        }
        let caller = AuditCaller(uid: uid, pid: pid, proof: proof, serial: serial)
        return state.withLock { state in
            state.recent[pid] = (caller, now)
            state.limitRecent(at: now)
            return caller
        }
    }

    /// Counts a use. `wakes`: ``fresh()`` is to be called. `counted` is nil at a restricted socket: each use counts.
    func note(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> (wakes: Bool, counted: CountedUse?) {
        state.withLock { state in
            var (caller, use) = (caller, use)
            if use.exposedSocket != nil, !state.countsSeparately(caller, use, at: now) {
                caller = AuditCaller(unknownOf: caller.uid)
                use = use.withoutDetails
            }
            let key = Key(serial: caller.serial, uid: caller.uid, use: use)
            // Counts are taken with this lock held, so one that is found here is not taken.
            if let known = state.rows[key], known.add(at: now) {
                return (false, use.exposedSocket == nil ? known : nil)
            }
            let counted = CountedUse(caller, use, at: now)
            state.rows[key] = counted
            state.fresh.append(key)
            defer { state.isWoken = true }
            return (!state.isWoken, use.exposedSocket == nil ? counted : nil)
        }
    }

    func fresh() -> [Row] {
        state.withLock { state in
            state.isWoken = false
            defer { state.fresh = [] }
            return state.fresh.compactMap { state.rows[$0]?.row }
        }
    }

    func settle(_ row: Row) {
        state.withLock { state in
            let key = Key(serial: row.caller.serial, uid: row.caller.uid, use: row.use)
            state.rows[key]?.subtract(row.tally.count)
        }
    }

    /// Removes all rows and returns those with unwritten counts, ordered by first use.
    func takeAll() -> [Row] {
        let rows = state.withLock { state in
            defer {
                state.rows = [:]
                state.fresh = []
                state.recent = [:]
            }
            return state.rows.values.compactMap { $0.take() }
        }
        return rows.sorted { ($0.tally.first, $0.caller.serial) < ($1.tally.first, $1.caller.serial) }
    }

    var recentCount: Int { state.withLock { $0.recent.count } }
    var count: Int { state.withLock { $0.rows.count } }
}

extension IssuedTokenLedger.State {
    fileprivate mutating func limitRecent(at now: Int) {
        guard recent.count > mostRecent else { return }
        recent = recent.filter { $0.value.second == now || $0.value.second == now - 1 }
        if recent.count > IssuedTokenLedger.maxRecent { recent = [:] }
        // Looked at again when there are twice as many: it costs each new process little.
        mostRecent = max(IssuedTokenLedger.fewRecent, min(2 * recent.count, IssuedTokenLedger.maxRecent))
    }
}
