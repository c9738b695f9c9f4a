internal import Dispatch
public import RingbackBase
internal import Synchronization

typealias Reply = OneOutcome<Result<PostgresRows, DatabaseReason>>

/// Runs statements at one database, on a few connections, each with a thread of its own. A connection is made when it
/// is needed, and closed after some time without use. A caller waits until its deadline at most.
public final class PostgresClient: Sendable {
    /// What is known about the database from the last attempts.
    public enum Reach: Sendable, Equatable {
        case unknown
        case reachable(since: ContinuousClock.Instant)
        case away(since: ContinuousClock.Instant, DatabaseReason)
    }

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
        var reach = Reach.unknown
    }

    private static let mostWaiting = 2_000
    let connector: Connector
    private let mostConnections: Int
    /// How long an unused connection is kept.
    let rest: Duration
    private let state = Mutex(State())

    public init(
        _ url: PostgresURL, password: PostgresPassword, application: String = "ringback", mostConnections: Int = 3,
        restsAfter: Duration = .seconds(60)
    ) {
        connector = Connector(url, password: password, application: application)
        self.mostConnections = mostConnections
        rest = restsAfter
    }

    public var reach: Reach { state.withLock { $0.reach } }
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
            if let silence = state.silence, ContinuousClock.now < silence, case .away(_, let failure) = state.reach {
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
            if case .reachable = state.reach { return }
            state.reach = .reachable(since: .now)
        }
    }

    /// Fails what waits too: each would run into the same.
    func noteFailure(_ failure: DatabaseReason) {
        let waiting: [Job] = state.withLock { state in
            let now = ContinuousClock.now
            let since = if case .away(let since, _) = state.reach { since } else { now }
            state.reach = .away(since: since, failure)
            // What was asked at the same time, and fails too, makes the silence no longer.
            if state.silence.map({ $0 <= now }) ?? true { state.silence = now + state.backoff.wait() }
            defer { state.queue = [] }
            return state.queue
        }
        for job in waiting { job.reply.give(.failure(failure)) }
    }
}
