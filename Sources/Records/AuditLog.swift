internal import Dispatch
public import StrictJSON
internal import Synchronization

/// Who took which token, and what became of sessions and keys: JSON lines in a file that only the user reads.
///
/// Nothing here makes a request wait: whoever tells something leaves it in memory, and a queue of its own writes. What
/// cannot be written is kept, within a bound, and tried again with the next line; that there is trouble is said once.
/// Never holds a secret: what is told are names, numbers and codes.
public final class AuditLog: Sendable {
    /// What the file and its surroundings are.
    public struct Options: Sendable {
        /// Bytes of one file; one older file is kept beside it.
        public var maxSize = 4 << 20
        /// Repetitions are counted for so long, then told in one line.
        public var interval: Duration = .seconds(60)
        /// Unix seconds.
        public var now: @Sendable () -> Int
        /// Told once when writing begins to fail, and once when it works again.
        public var report: @Sendable (String) -> Void

        public init(now: @escaping @Sendable () -> Int, report: @escaping @Sendable (String) -> Void) {
            self.now = now
            self.report = report
        }
    }

    /// How the writing goes.
    public struct Health: Sendable, Equatable {
        /// Attempts to write that failed.
        public var failures = 0
        /// Lines that were given up, since the memory for them was full too.
        public var lost = 0
        /// Lines that wait to be written.
        public var waiting = 0
    }

    private struct State {
        /// By file.
        var waiting: [AuditFiles.Name: WaitingLines] = [:]
        var failures = 0
        var lost = 0
        /// The queue will write.
        var isAsked = false
        var isFailing = false
        var isTimed = false
    }
    private let ledger = IssuedTokenLedger()
    private let state = Mutex(State())
    /// Only the queue touches it.
    private let told = Mutex(ToldUses())
    private let queue = DispatchQueue(label: "ringback.audit", qos: .utility)
    private let files: AuditFiles
    private let options: Options

    /// Lines that wait while nothing can be written; about half a mebibyte.
    static let maxWaiting = 2_048
    /// The same for each restricted socket.
    static let maxWaitingExposed = 128
    /// With so many rows their turn comes before the interval is over.
    static let maxRows = 1_024

    /// - Parameter path: the file, in a directory that is the user's alone.
    public init(path: String, options: Options) {
        files = AuditFiles(path: path, maxSize: options.maxSize)
        self.options = options
    }

    /// Unix seconds, by the clock that the log goes by.
    public var now: @Sendable () -> Int { options.now }

    // MARK: On the way of a request

    /// The caller of a new connection; keep it as long as the connection. `now` is in Unix seconds.
    ///
    /// - Parameter proof: nil where the kernel gives none.
    public func caller(uid: UInt32, pid: Int32, proof: ProcessProof? = nil, at now: Int) -> AuditCaller {
        ledger.caller(uid: uid, pid: pid, proof: proof, at: now)
    }

    /// Counts a use. The first of its kind by a program is written at once, repetitions every ``Options/interval``.
    public func note(_ caller: AuditCaller, _ use: AuditUse, at now: Int) {
        guard ledger.note(caller, use, at: now) else { return }
        queue.async { self.tellFresh() }
    }

    // MARK: Everything else

    /// Writes an event soon. Members must hold no secret.
    ///
    /// - Parameter socket: the restricted socket at which somebody caused it, if one did.
    public func write(_ event: String, _ members: JSONObject, at socket: String? = nil) {
        enqueue(AuditLog.entry(event, at: options.now(), members), socket)
        let isFirst = state.withLock { state in
            defer { state.isAsked = true }
            return !state.isAsked
        }
        // One turn writes all that came before it.
        guard isFirst else { return }
        queue.async {
            self.state.withLock { $0.isAsked = false }
            self.writeWaiting()
        }
    }

    /// Writes what was counted so far and everything that waits.
    public func flush() async {
        await withCheckedContinuation { done in
            queue.async {
                self.tellAll()
                done.resume()
            }
        }
    }

    /// What was asked for of the log.
    public struct Entries: Sendable {
        /// Oldest first.
        public var entries: [JSON]
        /// There are older ones that are wanted and did not fit.
        public var isTruncated: Bool
    }

    /// The newest entries that fit, oldest first, after a ``flush()``. What could not be written is among them.
    ///
    /// - Parameters:
    ///   - since: Unix seconds; entries about something earlier are left out.
    ///   - account: only entries about this account.
    ///   - limit: entries at most.
    public func entries(since: Int?, account: String?, limit: Int) async -> Entries {
        await withCheckedContinuation { done in
            queue.async {
                self.tellAll()
                let more = limit == .max ? limit : limit + 1
                var found: [JSON] = []
                let waiting = self.state.withLock { Set($0.waiting.keys) }
                for name in waiting.union(self.files.names).sorted() {
                    let unwritten = self.state.withLock { $0.waiting[name]?.lines.joined() }
                    let bytes = self.files[name].contents() + (unwritten.map { Array($0) } ?? [])
                    found += AuditReader.entries(in: bytes, since: since, account: account, limit: more)
                }
                done.resume(returning: AuditReader.newest(limit, of: found))
            }
        }
    }

    /// How the writing goes.
    public var health: Health {
        state.withLock { state in
            Health(
                failures: state.failures, lost: state.lost,
                waiting: state.waiting.values.reduce(0) { $0 + $1.lines.count })
        }
    }

    // MARK: On the queue

    private func tellFresh() {
        let rows = ledger.fresh()
        for row in rows {
            let identity = row.caller.identity
            guard told.withLock({ $0.insert(row.use, of: identity.program) }) else { continue }
            enqueue(AuditLog.entry(row.use, row.tally, identity), row.use.exposedSocket)
            ledger.settle(row)
        }
        writeWaiting()
        if ledger.count > AuditLog.maxRows { tellAll() } else { startTimer() }
    }

    private func tellAll() {
        // Several connections of a program make one line.
        var sums: [(use: AuditUse, tally: Tally, identity: CallerIdentity)] = []
        var places: [CallerIdentity.Program: [AuditUse: Int]] = [:]
        for row in ledger.takeAll() {
            let identity = row.caller.identity
            // Told now, if it was not before.
            _ = told.withLock { $0.insert(row.use, of: identity.program) }
            if let place = places[identity.program]?[row.use] {
                sums[place].tally.add(row.tally)
            } else {
                places[identity.program, default: [:]][row.use] = sums.count
                sums.append((row.use, row.tally, identity))
            }
        }
        for sum in sums { enqueue(AuditLog.entry(sum.use, sum.tally, sum.identity), sum.use.exposedSocket) }
        writeWaiting()
    }

    /// While something is counted or waits, somebody looks after it.
    private func startTimer() {
        let starts = state.withLock { state in
            defer { state.isTimed = true }
            return !state.isTimed
        }
        guard starts else { return }
        let (seconds, attoseconds) = options.interval.components
        let wait = DispatchTimeInterval.milliseconds(Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000))
        queue.asyncAfter(deadline: .now() + wait) { [weak self] in
            guard let self else { return }
            state.withLock { $0.isTimed = false }
            tellAll()
            if state.withLock({ !$0.waiting.isEmpty }) { startTimer() }
        }
    }

    private func enqueue(_ entry: JSONObject, _ socket: String?) {
        let line = AuditLine.bytes(of: entry)
        let most = socket == nil ? AuditLog.maxWaiting : AuditLog.maxWaitingExposed
        state.withLock { state in
            if !state.waiting[AuditFiles.Name(socket), default: WaitingLines()].append(line, most) { state.lost += 1 }
        }
    }

    private func writeWaiting() {
        let waiting = state.withLock { $0.waiting }
        guard !waiting.isEmpty else { return }
        var failure: AuditFile.Failure?
        // The owner's own lines first.
        for name in waiting.keys.sorted() {
            guard let former = waiting[name], !former.lines.isEmpty else { continue }
            var lines = former.lines
            if former.untold > 0 {
                let count: JSONObject = JSONObject([.init("count", .integer(former.untold))])
                lines.append(AuditLine.bytes(of: AuditLog.entry("entries_lost", at: options.now(), count)))
            }
            do throws(AuditFile.Failure) {
                try files.append(lines, to: name)
                settle(name, written: former.lines.count, told: former.untold)
            } catch {
                failure = error
                settle(name, written: AuditLog.whole(of: lines, in: error.written), told: 0)
            }
        }
        report(failure)
    }

    private func settle(_ name: AuditFiles.Name, written: Int, told: Int) {
        state.withLock { state in
            state.waiting[name]?.remove(written, told: told)
            if state.waiting[name]?.isEmpty == true { state.waiting[name] = nil }
        }
    }

    /// Trouble is reported when it begins and when it is over.
    private func report(_ failure: AuditFile.Failure?) {
        let wasFailing = state.withLock { state in
            defer { state.isFailing = failure != nil }
            if failure != nil { state.failures += 1 }
            return state.isFailing
        }
        guard let failure else {
            if wasFailing { options.report("The audit log is written again.") }
            return
        }
        if !wasFailing {
            options.report("The audit log cannot be written (\(failure)). Its lines are kept and tried again.")
        }
        startTimer()
    }

    /// How many lines got there whole: they are not written twice, the one that was cut is.
    static func whole(of lines: [[UInt8]], in written: Int) -> Int {
        var rest = written
        return lines.prefix { line in
            rest -= line.count
            return rest >= 0
        }.count
    }
}
