internal import Dispatch
public import RingbackBase
internal import Synchronization

/// Records which program received which token, and changes of sessions and keys, as JSON lines in a file that only the
/// user can read.
/// A request never waits for the log: entries are stored in memory, and a queue of its own writes them. Entries that
/// cannot be written are kept up to a limit and tried again with the next one. The log never contains a secret.
public final class AuditLog: Sendable {
    public struct Options: Sendable {
        /// The maximum size of one file in bytes; one previous file is kept.
        public var maxSize = 4 << 20
        /// Repeated uses are counted for this time and then written as one line.
        public var interval: Duration = .seconds(60)
        /// Unix seconds.
        public var now: @Sendable () -> Int
        /// Called with a message when writing begins to fail, and when it works again.
        public var report: @Sendable (String) -> Void

        public init(now: @escaping @Sendable () -> Int, report: @escaping @Sendable (String) -> Void) {
            self.now = now
            self.report = report
        }
    }
    public struct Health: Sendable, Equatable {
        public var failures = 0
        /// The number of lines that were dropped because the memory for them was full.
        public var lost = 0
        public var waiting = 0
    }

    private struct State {
        var waiting: [AuditFiles.Name: WaitingLines] = [:]
        var repeated: RepeatedEvents
        var failures = 0
        var lost = 0
        /// True if a task on the queue will write the lines.
        var isAsked = false
        var isFailing = false
        var isTimed = false
    }
    private let ledger = IssuedTokenLedger()
    private let state: Mutex<State>
    /// Used on the queue only.
    private let told = Mutex(RecordedUses())
    private let queue = DispatchQueue(label: "ringback.audit", qos: .utility)
    private let files: AuditFiles
    private let options: Options
    let host = Mutex<@Sendable () -> String?> { nil }
    /// The maximum number of unwritten lines in memory; about half a mebibyte.
    static let maxWaiting = 2_048
    /// The same limit for each restricted socket.
    static let maxWaitingExposed = 128
    /// If there are more counted rows than this, they are written before the interval ends.
    static let maxRows = 1_024

    /// `path` is the file, in a directory to which only the user has access.
    public init(path: String, options: Options) {
        files = AuditFiles(path: path, maxSize: options.maxSize)
        state = Mutex(State(repeated: RepeatedEvents(length: Int(options.interval.components.seconds))))
        self.options = options
    }

    public var now: @Sendable () -> Int { options.now }

    /// The caller of a new connection, to be kept as long. `now` is in Unix seconds; `proof` is nil if there is none.
    public func caller(uid: UInt32, pid: Int32, proof: ProcessProof? = nil, at now: Int) -> AuditCaller {
        ledger.caller(uid: uid, pid: pid, proof: proof, at: now)
    }

    /// Counts a use: the first is written at once, repetitions after each interval. Returns the count to add them to.
    @discardableResult
    public func note(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> CountedUse? {
        let (wakes, counted) = ledger.note(caller, use, at: now)
        if wakes { queue.async { self.writeNew() } }
        return counted
    }

    /// Writes an event soon, without secrets. `socket` is the restricted one whose client caused it.
    public func write(_ event: String, _ members: JSONObject, at socket: String? = nil) {
        enqueue(AuditLog.entry(event, at: options.now(), members), socket)
        let isFirst = state.withLock { state in
            defer { state.isAsked = true }
            return !state.isAsked
        }
        // One task on the queue writes all lines that were added before it runs.
        guard isFirst else { return }
        queue.async {
            self.state.withLock { $0.isAsked = false }
            self.writeWaiting()
        }
    }

    /// Writes an event that a program at a restricted socket may cause often. Equal ones are counted and written as one
    /// line; so are those of a socket that has many different ones, with their `common` members.
    public func writeCounted(_ event: String, _ members: JSONObject, common: JSONObject, at socket: String) {
        let entry = RepeatedEvents.Entry(event: event, members: members, socket: socket)
        let now = options.now()
        guard let first = state.withLock({ $0.repeated.note(entry, common: common, at: now) }) else {
            queue.async { self.startTimer() }
            return
        }
        write(first.event, first.members, at: first.socket)
    }

    public func flush() async {
        await withCheckedContinuation { done in
            queue.async {
                self.writeAll()
                done.resume()
            }
        }
    }

    /// `isTruncated`: older matching entries were left out because of the limit.
    public typealias Entries = (entries: [JSON], isTruncated: Bool)

    /// The newest matching entries, `limit` at most, oldest first, after a ``flush()``. Entries that could not be
    /// written are included. Entries before `since` (Unix seconds) and of other accounts are left out.
    public func entries(since: Int?, account: String?, limit: Int) async -> Entries {
        await withCheckedContinuation { done in
            queue.async {
                self.writeAll()
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

    public var health: Health {
        state.withLock { state in
            Health(
                failures: state.failures, lost: state.lost,
                waiting: state.waiting.values.reduce(0) { $0 + $1.lines.count })
        }
    }

    private func writeNew() {
        let rows = ledger.fresh()
        for row in rows {
            let identity = row.caller.identity
            guard told.withLock({ $0.insert(row.use, of: identity.program) }) else { continue }
            enqueue(AuditLog.entry(row.use, row.tally, identity), row.use.exposedSocket)
            ledger.settle(row)
        }
        writeWaiting()
        if ledger.count > AuditLog.maxRows { writeAll() } else { startTimer() }
    }

    private func writeAll() {
        // The uses of several connections of one program are added up into one line.
        var sums: [(use: AuditUse, tally: Tally, identity: CallerIdentity)] = []
        var places: [CallerIdentity.Program: [AuditUse: Int]] = [:]
        for row in ledger.takeAll() {
            let identity = row.caller.identity
            // Mark the use as written, even if this is its first time.
            _ = told.withLock { $0.insert(row.use, of: identity.program) }
            if let place = places[identity.program]?[row.use] {
                sums[place].tally.add(row.tally)
            } else {
                places[identity.program, default: [:]][row.use] = sums.count
                sums.append((row.use, row.tally, identity))
            }
        }
        for sum in sums { enqueue(AuditLog.entry(sum.use, sum.tally, sum.identity), sum.use.exposedSocket) }
        let now = options.now()
        for entry in state.withLock({ $0.repeated.takeAll(at: now) }) {
            enqueue(AuditLog.entry(entry.event, at: now, entry.members), entry.socket)
        }
        writeWaiting()
    }

    private func startTimer() {
        let starts = state.withLock { state in
            defer { state.isTimed = true }
            return !state.isTimed
        }
        guard starts else { return }
        let wait = DispatchTimeInterval.milliseconds(Int(options.interval / .milliseconds(1)))
        queue.asyncAfter(deadline: .now() + wait) { [weak self] in
            guard let self else { return }
            state.withLock { $0.isTimed = false }
            writeAll()
            if state.withLock({ !$0.waiting.isEmpty }) { startTimer() }
        }
    }

    private func enqueue(_ entry: JSONObject, _ socket: String?) {
        var entry = entry
        entry["on_host"] = host.withLock { $0 }().map { .string($0) }
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
        // The owner's own lines are written first.
        for name in waiting.keys.sorted() {
            guard let former = waiting[name], !former.lines.isEmpty else { continue }
            var lines = former.lines
            if former.unreported > 0 {
                let entry = AuditLog.entry("entries_lost", at: options.now(), ["count": former.unreported])
                lines.append(AuditLine.bytes(of: entry))
            }
            do throws(AuditFile.Failure) {
                try files.append(lines, to: name)
                settle(name, written: former.lines.count, told: former.unreported)
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

    private func report(_ failure: AuditFile.Failure?) {
        let wasFailing = state.withLock { state in
            defer { state.isFailing = failure != nil }
            if failure != nil { state.failures += 1 }
            return state.isFailing
        }
        guard let failure else {
            if wasFailing { options.report("The audit log can be written again.") }
            return
        }
        if !wasFailing {
            options.report(
                "The audit log cannot be written (\(failure)). Its entries are kept in memory and written later.")
        }
        startTimer()
    }

    /// The number of lines that were written completely. A line that was cut off is written again.
    static func whole(of lines: [[UInt8]], in written: Int) -> Int {
        var rest = written
        return lines.prefix { line in
            rest -= line.count
            return rest >= 0
        }.count
    }
}

/// A use of the socket API that the audit log counts. Equal uses of one program become one line with a count.
public struct AuditUse: Hashable, Sendable {
    public enum Kind: String, Sendable {
        case issuedToken = "issued_token"
        /// A request that changes something, or any request of another user (root).
        case request
    }

    public var kind: Kind
    public var account: String?
    /// The operation's name in the policy (`token`, `id_token`, `manage` …).
    public var operation: String
    /// The scope of a downscoped token; nil for the session's own.
    public var scope: String?
    public var audience: String?
    public var resource: String?
    /// The URL pattern of the origin for which a tool looked the token up, or got a proof; nil for other uses.
    public var origin: String?
    /// The name that the tool gave itself. It is not verified.
    public var tool: String?
    public var exposedSocket: String?
    /// For a request: method and path of the route, with parameters in braces.
    public var route: String?

    public init(_ kind: Kind, account: String?, operation: String) {
        self.kind = kind
        self.account = account
        self.operation = operation
    }

    /// The use without the values that a caller chooses freely.
    var withoutDetails: AuditUse {
        var use = self
        (use.scope, use.audience, use.resource, use.tool) = (nil, nil, nil, nil)
        return use
    }
}

public struct ProcessProof: Sendable {
    /// Unique for each process since boot; nil if the kernel does not report it.
    let identity: UInt64?
    /// False once the process has ended, because its pid may then be another process's.
    let isAlive: @Sendable () -> Bool

    public init(identity: UInt64?, isAlive: @escaping @Sendable () -> Bool) {
        self.identity = identity
        self.isAlive = isAlive
    }
}

/// A program that connected to the socket. Only `uid` and `pid` come from the kernel with the connection; the rest was
/// read from `/proc` shortly after. ``isVerified`` says whether the executable is certainly that process's.
public final class AuditCaller: Sendable {
    public let uid: UInt32
    public let pid: Int32
    /// Read at the first contact, because a short-lived program may end a moment later.
    let link: ExecutableLink
    public let executable: String?
    /// True if the process that connected was alive after ``executable`` was read, and that path is the same file for
    /// the daemon. The process may have called `exec` before it sent the request.
    public let isVerified: Bool
    let processIdentity: UInt64?
    let serial: UInt64
    /// When it was seen first, in ``ProcessFacts/ticksSinceBoot``.
    let seen: UInt64
    private let resolved = Mutex<CallerIdentity?>(nil)
    /// The process for which one of Ringback's own executables connected: it is looked up at once, since they end soon.
    fileprivate let ancestor: CallingProgram.Found?

    init(
        uid: UInt32, pid: Int32, proof: ProcessProof? = nil, seen: UInt64 = ProcessFacts.ticksSinceBoot, serial: UInt64
    ) {
        self.uid = uid
        self.pid = pid
        self.seen = seen
        link = ExecutableLink(of: pid)
        executable = link.text
        // In this order: the process must be alive after the executable was read.
        isVerified = executable != nil && link.isFoundHere && proof?.isAlive() == true
        ancestor = CallingProgram.isOwn(executable) ? CallingProgram.search(from: pid) : nil
        processIdentity = proof?.identity
        self.serial = serial
    }

    /// Stands for all processes of a uid that are counted together.
    convenience init(unknownOf uid: UInt32) { self.init(uid: uid, pid: -1, serial: 0) }

    /// Its systemd unit when it was looked up first; nil if it has none, or had ended.
    public var unit: String? { identity.unit }

    /// For which program it connected, when it was looked up first.
    public var calling: CallingProgram { identity.calling }

    /// The caller's identity. `/proc` is read only once, because the process id may later belong to another process.
    var identity: CallerIdentity {
        if let known = resolved.withLock({ $0 }) { return known }
        let found = CallerIdentity(of: self)
        resolved.withLock { $0 = found }
        return found
    }
}

struct CallerIdentity: Sendable {
    /// A process and the program that it ran. After `exec` it counts as another program.
    struct Program: Hashable, Sendable {
        let uid: UInt32
        let pid: Int32
        let executable: String?
        let isVerified: Bool
        /// Nil if the process had ended when it was looked up; then `serial` distinguishes it.
        let startTime: UInt64?
        let serial: UInt64
    }
    let program: Program
    let unit: String?
    let calling: CallingProgram

    /// Race: the id may be a later process's, which started after the caller was seen. It has no part in this identity.
    init(of caller: AuditCaller) {
        func start() -> UInt64? { ProcessFacts.startTime(of: caller.pid).flatMap { $0 <= caller.seen ? $0 : nil } }
        let startTime = start()
        // The start time is read before and after: the unit is that of the process in between.
        let unit = startTime == nil ? nil : ProcessFacts.unit(of: caller.pid)
        program = Program(
            uid: caller.uid, pid: caller.pid, executable: caller.executable, isVerified: caller.isVerified,
            startTime: startTime,
            serial: startTime == nil ? caller.serial : 0)
        let (pid, isVerified) = (startTime == nil ? -1 : caller.pid, caller.isVerified)
        calling =
            caller.ancestor.map { CallingProgram(of: pid, for: $0, isVerified: isVerified) }
            ?? CallingProgram(of: pid, readAs: caller.executable, isVerified: isVerified)
        self.unit = start() == startTime ? unit : nil
    }
}

/// How often something was done, and the first and last time in Unix seconds.
struct Tally: Sendable, Equatable {
    var count = 0
    var first: Int
    var last: Int

    mutating func add(at now: Int) {
        if count == 0 { first = now }
        count += 1
        last = now
    }

    mutating func add(_ other: Tally) {
        count += other.count
        first = min(first, other.first)
        last = max(last, other.last)
    }
}
