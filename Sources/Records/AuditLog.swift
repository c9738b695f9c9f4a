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
        var waiting: [[UInt8]] = []
        var health = Health()
        /// The queue will write.
        var isAsked = false
        var isFailing = false
        var isTimed = false
        /// Lines that were given up and are not told of in the file yet.
        var untold = 0
    }
    private let ledger = IssuedTokenLedger()
    private let state = Mutex(State())
    /// Only the queue touches it.
    private let told = Mutex(ToldUses())
    private let queue = DispatchQueue(label: "ringback.audit", qos: .utility)
    private let file: AuditFile
    private let options: Options

    /// Lines that wait while nothing can be written; about half a mebibyte.
    static let maxWaiting = 2_048
    /// With so many rows their turn comes before the interval is over.
    static let maxRows = 1_024

    /// - Parameter path: the file, in a directory that is the user's alone.
    public init(path: String, options: Options) {
        file = AuditFile(path: path, maxSize: options.maxSize)
        self.options = options
    }

    /// Unix seconds, by the clock that the log goes by.
    public var now: @Sendable () -> Int { options.now }

    // MARK: On the way of a request

    /// The caller of a new connection; keep it as long as the connection. `now` is in Unix seconds.
    public func caller(uid: UInt32, pid: Int32, at now: Int) -> AuditCaller {
        ledger.caller(uid: uid, pid: pid, at: now)
    }

    /// Counts a use. The first of its kind by a program is written at once, repetitions every ``Options/interval``.
    public func note(_ caller: AuditCaller, _ use: AuditUse, at now: Int) {
        guard ledger.note(caller, use, at: now) else { return }
        queue.async { self.tellFresh() }
    }

    // MARK: Everything else

    /// Writes an event soon. Members must hold no secret.
    public func write(_ event: String, _ members: JSONObject) {
        enqueue(AuditLog.entry(event, at: options.now(), members))
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
                let bytes = self.file.contents() + self.state.withLock { $0.waiting.joined() }
                let more = limit == .max ? limit : limit + 1
                let found = AuditReader.entries(in: bytes, since: since, account: account, limit: more)
                done.resume(
                    returning: Entries(
                        entries: AuditReader.byTime(found.suffix(limit)), isTruncated: found.count > limit))
            }
        }
    }

    /// How the writing goes.
    public var health: Health {
        state.withLock { state in
            state.health.waiting = state.waiting.count
            return state.health
        }
    }

    // MARK: On the queue

    private func tellFresh() {
        let rows = ledger.fresh()
        for row in rows {
            let identity = row.caller.identity
            guard told.withLock({ $0.insert(row.use, of: identity.program) }) else { continue }
            enqueue(AuditLog.entry(row.use, row.tally, identity))
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
        for sum in sums { enqueue(AuditLog.entry(sum.use, sum.tally, sum.identity)) }
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

    private func enqueue(_ entry: JSONObject) {
        let line = AuditLine.bytes(of: entry)
        state.withLock { state in
            if state.waiting.count < AuditLog.maxWaiting {
                state.waiting.append(line)
            } else {
                state.health.lost += 1
                state.untold += 1
            }
        }
    }

    private func writeWaiting() {
        var lines = state.withLock { $0.waiting }
        guard !lines.isEmpty else { return }
        let untold = state.withLock { $0.untold }
        if untold > 0 {
            let note = AuditLog.entry("entries_lost", at: options.now(), JSONObject([.init("count", .integer(untold))]))
            lines.append(AuditLine.bytes(of: note))
        }
        do throws(AuditFile.Failure) {
            try file.append(lines)
            finished(lines.count - (untold > 0 ? 1 : 0), untold)
        } catch {
            failed(lines, error)
        }
    }

    private func finished(_ count: Int, _ untold: Int) {
        let wasFailing = state.withLock { state in
            state.waiting.removeFirst(count)
            state.untold -= untold
            defer { state.isFailing = false }
            return state.isFailing
        }
        if wasFailing { options.report("The audit log is written again.") }
    }

    private func failed(_ lines: [[UInt8]], _ failure: AuditFile.Failure) {
        let whole = AuditLog.whole(of: lines, in: failure.written)
        let isFirst = state.withLock { state in
            state.waiting.removeFirst(min(whole, state.waiting.count))
            state.health.failures += 1
            defer { state.isFailing = true }
            return !state.isFailing
        }
        if isFirst {
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
