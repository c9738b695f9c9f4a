internal import CLinux
internal import Dispatch
internal import Glibc
public import RingbackBase
internal import Synchronization

typealias Reply = OneOutcome<Result<PostgresRows, DatabaseReason>>

/// Runs statements at one database, on a few connections, each with a thread of its own. A connection is made when it
/// is needed, and closed after some time without use. A caller waits until its deadline at most.
public final class PostgresClient: Sendable {
    enum Work: Sendable {
        case statement(String, [PostgresValue])
        case script(String)
    }

    struct Job: Sendable {
        let work: Work
        let deadline: ContinuousClock.Instant
        let reply: Reply
    }

    private struct State {
        var queue: [Job] = []
        var idle: [PostgresWorker] = []
        var workers = 0
        var isStopped = false
        var backoff = Backoff()
        /// After a failure: until when nothing is tried.
        var silence: ContinuousClock.Instant?
        /// Of the last attempt; nil if it was none.
        var failure: DatabaseReason?
    }

    private static let mostWaiting = 2_000
    let connector: Connector
    private let mostConnections: Int
    /// How long an unused connection is kept.
    static let rest: Duration = .seconds(60)
    private let state = Mutex(State())

    public init(_ url: PostgresURL, password: PostgresPassword, mostConnections: Int = 3) {
        connector = Connector(url, password: password)
        self.mostConnections = mostConnections
    }

    /// Why the database cannot be used; nil if it could at the last attempt, or was not tried yet.
    public var failure: DatabaseReason? { state.withLock { $0.failure } }
    public var connections: Int { state.withLock { $0.workers } }

    /// Runs one statement as a transaction of its own. Parameters are `$1` to `$16`; results are in binary form. Throws
    /// why there is no result; after `timedOut`, `closed` and `cancelled` the statement may have taken effect.
    public func run(
        _ statement: String, _ values: [PostgresValue] = [], within limit: Duration
    ) async throws(DatabaseReason) -> PostgresRows {
        try await perform(.statement(statement, values), within: limit)
    }

    /// Runs several statements without parameters as one transaction, and returns no rows. Throws as ``run(_:_:within:)``.
    public func run(script: String, within limit: Duration) async throws(DatabaseReason) {
        _ = try await perform(.script(script), within: limit)
    }

    /// The verifier that a server stores for a role's password (SCRAM-SHA-256, RFC 7677). No server is asked.
    public static func verifier(of password: Secret) throws(DatabaseReason) -> String {
        try Session.verifier(of: password)
    }

    private func perform(_ work: Work, within limit: Duration) async throws(DatabaseReason) -> PostgresRows {
        let reply = Reply()
        submit(Job(work: work, deadline: .now + limit, reply: reply))
        if !reply.isGiven {
            let milliseconds = DispatchTimeInterval.milliseconds(Int((limit / .milliseconds(1)).rounded(.up)))
            DispatchQueue.global().asyncAfter(deadline: .now() + milliseconds) { reply.give(.failure(.timedOut)) }
        }
        return try await withTaskCancellationHandler {
            await reply.outcome()
        } onCancel: {
            reply.give(.failure(.cancelled))
        }.get()
    }

    /// Ends the silence after a failure: the network may be back.
    public func tryAgain() {
        state.withLock { state in
            state.silence = nil
            state.backoff.reset()
        }
    }

    /// Fails what waits, and closes the connections when their statements are over.
    public func shutdown() {
        let (jobs, workers) = state.withLock { state in
            defer {
                state.isStopped = true
                state.queue = []
                state.idle = []
            }
            return (state.queue, state.idle)
        }
        for job in jobs { job.reply.give(.failure(.cancelled)) }
        for worker in workers { worker.wake.call() }
    }

    private func submit(_ job: Job) {
        let refusal: DatabaseReason? = state.withLock { state in
            guard !state.isStopped else { return .cancelled }
            if let silence = state.silence, ContinuousClock.now < silence, let failure = state.failure {
                return failure
            }
            guard state.queue.count < Self.mostWaiting else { return .busy }
            state.queue.append(job)
            if let worker = state.idle.popLast() {
                worker.wake.call()
            } else if state.workers < mostConnections {
                guard let worker = PostgresWorker(self), worker.start() else {
                    if state.workers > 0 { return nil }
                    state.queue.removeLast()
                    return .busy
                }
                state.workers += 1
            }
            return nil
        }
        if let refusal { job.reply.give(.failure(refusal)) }
    }

    enum Next {
        case job(Job)
        case rest
        case end
    }

    /// The next statement for a thread. Without one the thread is to wait for its wake; if it has waited already, to end.
    func next(for worker: PostgresWorker, hasRested: Bool) -> Next {
        state.withLock { state in
            if !state.isStopped {
                // The callers of some are gone.
                state.queue.removeAll(where: \.reply.isGiven)
                if !state.queue.isEmpty {
                    state.idle.removeAll { $0 === worker }
                    return .job(state.queue.removeFirst())
                }
                if !hasRested {
                    if !state.idle.contains(where: { $0 === worker }) { state.idle.append(worker) }
                    return .rest
                }
            }
            state.idle.removeAll { $0 === worker }
            state.workers -= 1
            return .end
        }
    }

    func noteSuccess() {
        state.withLock { state in
            state.silence = nil
            state.backoff.reset()
            state.failure = nil
        }
    }

    /// Fails what waits too: each would run into the same.
    func noteFailure(_ failure: DatabaseReason) {
        let waiting: [Job] = state.withLock { state in
            let now = ContinuousClock.now
            state.failure = failure
            // What was asked at the same time, and fails too, makes the silence no longer.
            if state.silence.map({ $0 <= now }) ?? true { state.silence = now + state.backoff.wait() }
            defer { state.queue = [] }
            return state.queue
        }
        for job in waiting { job.reply.give(.failure(failure)) }
    }
}

final class PostgresWorker: Sendable {
    private static let connectLimit: Duration = .seconds(6)
    /// A database that has not answered for so long is away.
    private static let patience: Duration = .seconds(1)
    let wake: Wake
    private let client: PostgresClient

    init?(_ client: PostgresClient) {
        guard let wake = Wake() else { return nil }
        self.wake = wake
        self.client = client
    }

    func start() -> Bool { BlockingThread.start { self.run() } == 0 }

    private func run() {
        unsafe clinux_name_thread("rb-postgres")
        var session: Session?
        var hasRested = false
        var lastUse = ContinuousClock.now
        while true {
            switch client.next(for: self, hasRested: hasRested) {
            case .end: return
            case .job(let job):
                hasRested = false
                // The machine may have been suspended: the server has closed the connection meanwhile, and said so in vain.
                if lastUse.duration(to: .now) > PostgresClient.rest { session = nil }
                session = perform(job, on: session)
                lastUse = .now
            case .rest:
                switch wake.wait(for: PostgresClient.rest, other: session?.descriptor ?? -1) {
                case .called: break
                case .timedOut: hasRested = true
                // Usually the server closes the connection.
                case .readable: if (try? session?.notifications()) == nil { session = nil }
                }
            }
        }
    }

    /// Runs the statement, after connecting where that is needed. Returns the connection if it can be used again.
    private func perform(_ job: PostgresClient.Job, on session: Session?) -> Session? {
        let connected: Session
        do throws(DatabaseReason) {
            if let session { connected = session } else { connected = try connect(for: job) }
        } catch {
            client.noteFailure(error)
            job.reply.give(.failure(error))
            return nil
        }
        let start = ContinuousClock.now
        do throws(DatabaseReason) {
            var rows = PostgresRows([])
            switch job.work {
            case .statement(let text, let values): rows = try connected.run(text, values, until: job.deadline)
            case .script(let text): try connected.run(script: text, until: job.deadline)
            }
            client.noteSuccess()
            job.reply.give(.success(rows))
        } catch {
            // A statement that had little time left says nothing about the database.
            let isFrozen = error == .timedOut && start.duration(to: .now) > Self.patience
            if isFrozen || error == .readOnly { client.noteFailure(error) }
            if !error.endsConnection { client.noteSuccess() }
            job.reply.give(.failure(error))
        }
        return connected.isUsable ? connected : nil
    }

    private func connect(for job: PostgresClient.Job) throws(DatabaseReason) -> Session {
        try client.connector.connect(until: min(job.deadline, .now + Self.connectLimit))
    }
}

/// Wakes a thread that waits in `poll`, by an eventfd(2). It is closed when the last reference goes.
final class Wake: Sendable {
    let descriptor: Int32

    init?() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func call() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    enum Event {
        case called
        case readable
        case timedOut
    }

    /// Waits for a call, an event of the other descriptor (ignored if negative), or until the time has passed.
    func wait(for duration: Duration, other: Int32 = -1) -> Event {
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        let end = ContinuousClock.now + duration
        while true {
            let left = ContinuousClock.now.duration(to: end)
            if unsafe poll(&entries, 2, Self.milliseconds(left)) > 0 {
                guard entries[0].revents != 0 else { return .readable }
                var count: UInt64 = 0
                _ = unsafe read(descriptor, &count, 8)
                return .called
            }
            if left <= .zero { return .timedOut }
        }
    }

    /// Rounded up, so that a wait is never too short; at most a minute.
    static func milliseconds(_ duration: Duration) -> Int32 {
        guard duration > .zero else { return 0 }
        return Int32(min(duration / .milliseconds(1), 60_000).rounded(.up))
    }
}

/// A connection that waits for notifications, and asks a question now and then. It is made again after it was lost.
public final class PostgresListener: Sendable {
    public enum Event: Sendable, Equatable {
        /// Everything may have changed before. `listens` is false behind a pooler: then there are no notifications.
        case connected(listens: Bool)
        /// The payload of a notification. Any role of the database can send one.
        case notified(String)
        case asked(PostgresRows)
        case lost(DatabaseReason)
    }

    /// What the connection does. Statements have no results but those named.
    public struct Plan: Sendable {
        /// Returns the name of the channel: letters, digits and `_`.
        public var channel: String
        /// Asked when the connection is made, and at intervals.
        public var question: String
        public var values: [PostgresValue]
        public var intervalWhileListening: Duration = .seconds(30)
        public var intervalWithoutNotifications: Duration = .seconds(5)
        /// A notification after which the channel is asked for at once. It is asked for before each question, too.
        public var renewal = "*"

        public init(channel: String, question: String, values: [PostgresValue]) {
            self.channel = channel
            self.question = question
            self.values = values
        }
    }

    private static let limit: Duration = .seconds(5)
    private let client: PostgresClient
    private let plan: Plan
    private let report: @Sendable (Event) -> Void
    private let wake: Wake?
    private let isStopped = Mutex(false)

    /// Starts a thread that calls `report`, never twice at once, until ``stop()``.
    public init(_ client: PostgresClient, _ plan: Plan, report: @escaping @Sendable (Event) -> Void) {
        self.client = client
        self.plan = plan
        self.report = report
        wake = Wake()
        guard let wake, BlockingThread.start({ self.run(wake) }) == 0 else {
            report(.lost(.busy))
            return
        }
    }

    public func stop() {
        isStopped.withLock { $0 = true }
        wake?.call()
    }

    /// Connects at once if it waits to do so: the network may be back.
    public func tryAgain() { wake?.call() }

    private func run(_ wake: Wake) {
        unsafe clinux_name_thread("rb-listen")
        var backoff = Backoff()
        while !isStopped.withLock({ $0 }) {
            do throws(DatabaseReason) {
                let session = try client.connector.connect(until: .now + Self.limit)
                try serve(session, wake) { backoff.reset() }
            } catch {
                report(.lost(error))
                _ = wake.wait(for: backoff.wait())
            }
        }
    }

    /// Reports until it is stopped, or the connection is to be made anew. Throws when the connection ends.
    private func serve(_ session: Session, _ wake: Wake, _ noteSuccess: () -> Void) throws(DatabaseReason) {
        var channel: String?
        let listens = try listen(session, from: &channel)
        noteSuccess()
        client.noteSuccess()
        report(.connected(listens: listens))
        let interval = listens ? plan.intervalWhileListening : plan.intervalWithoutNotifications
        try ask(session)
        var next = ContinuousClock.now + interval
        while true {
            // Before each wait: a statement reads notifications too, and the connection is not readable again for them.
            let payloads = try session.notifications()
            if payloads.contains(plan.renewal) { _ = try listen(session, from: &channel) }
            for payload in payloads { report(.notified(payload)) }
            let event = wake.wait(
                for: payloads.isEmpty ? ContinuousClock.now.duration(to: next) : .zero, other: session.descriptor)
            if isStopped.withLock({ $0 }) || !session.isUsable { return }
            // Also when it is called: the network may be another one, and the connection dead.
            if event != .called, ContinuousClock.now < next { continue }
            let former = channel
            if listens { _ = try listen(session, from: &channel) }
            // Notifications at the new channel were missed until now.
            if channel != former { report(.notified(plan.renewal)) }
            try ask(session)
            next = .now + interval
        }
    }

    private func ask(_ session: Session) throws(DatabaseReason) {
        report(.asked(try session.run(plan.question, plan.values, until: .now + Self.limit)))
    }

    /// Listens at the channel as it is named now. False behind a pooler: each statement may have another process.
    private func listen(_ session: Session, from former: inout String?) throws(DatabaseReason) -> Bool {
        let deadline = ContinuousClock.now + Self.limit
        let answer = try session.run("SELECT pg_catalog.pg_backend_pid()", [], until: deadline)
        guard answer.count == 1 else { throw .malformed }
        guard try answer[0].integer(0) == session.backend else { return false }
        while true {
            let named = try session.run(plan.channel, plan.values, until: deadline)
            guard named.count == 1 else { throw .malformed }
            let channel = try named[0].text(0)
            let isName = channel.utf8.allSatisfy { $0.isDigit || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "_") }
            guard isName, (1...63).contains(channel.utf8.count) else { throw .malformed }
            // The name may have changed again before LISTEN took effect: it is asked for until it is the one listened at.
            guard channel != former else { return true }
            try session.run(script: "UNLISTEN *; LISTEN \"\(channel)\"", until: deadline)
            former = channel
        }
    }
}
