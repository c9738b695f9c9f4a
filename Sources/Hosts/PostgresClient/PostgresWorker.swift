internal import CLinux
internal import Glibc
internal import Synchronization

/// One thread with its connection.
final class PostgresWorker: Sendable {
    /// A connection that is not made by then will not be made.
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

    func start() -> Bool { BlockingThread.start("rb-postgres") { self.run() } }

    private func run() {
        var session: Session?
        var hasRested = false
        var lastUse = ContinuousClock.now
        while true {
            switch client.next(for: self, hasRested: hasRested) {
            case .end: return
            case .job(let job):
                hasRested = false
                // The machine may have been suspended: the server has closed the connection meanwhile, and said so in vain.
                if lastUse.duration(to: .now) > client.rest { session = nil }
                session = perform(job, on: session)
                lastUse = .now
            case .rest:
                switch wake.wait(for: client.rest, other: session?.descriptor ?? -1) {
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
        do throws(PostgresFailure) {
            if let session { connected = session } else { connected = try connect(for: job) }
        } catch {
            client.noteFailure(error)
            job.reply.give(.failure(error))
            return nil
        }
        let start = ContinuousClock.now
        do throws(PostgresFailure) {
            let rows = try run(job.work, on: connected, until: job.deadline)
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

    private func run(
        _ work: PostgresClient.Work, on session: Session, until deadline: ContinuousClock.Instant
    ) throws(PostgresFailure) -> PostgresRows {
        switch work {
        case .statement(let text, let values): return try session.run(text, values, until: deadline)
        case .script(let text):
            try session.run(script: text, until: deadline)
            return PostgresRows([])
        }
    }

    private func connect(for job: PostgresClient.Job) throws(PostgresFailure) -> Session {
        try client.connector.connect(until: min(job.deadline, .now + Self.connectLimit))
    }
}

/// Wakes a thread that waits in `poll`, by an eventfd(2). It is closed when the last reference goes.
final class Wake: Sendable {
    let descriptor: Int32

    /// Nil if there is no descriptor left.
    init?() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func call() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Takes back all calls.
    func reset() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
    }

    enum Event {
        case called
        /// The other descriptor can be read, or its other end is closed.
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
                reset()
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

/// A thread for what blocks. It blocks every signal: a connection that is reset must not end the process by SIGPIPE, and
/// other signals are handled by the thread that waits for them.
enum BlockingThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts it; false if the system has no more threads.
    static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        let retained = unsafe Unmanaged.passRetained(
            Body {
                unsafe clinux_name_thread(name)
                body()
            })
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            if let context = unsafe context { unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }
        guard unsafe pthread_create(&thread, nil, entry, retained.toOpaque()) == 0 else {
            unsafe retained.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}

// The outcome of a statement is set once: the first one that is given counts, from the connection, the timer or a
// cancellation.

/// Passes the outcome of a statement to the waiting caller.
final class Reply: Sendable {
    typealias Outcome = Result<PostgresRows, PostgresFailure>

    private enum State {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
    }

    private let state = Mutex(State.open)

    /// True once the outcome is set: no caller waits for the statement any more.
    var isGiven: Bool {
        state.withLock { state in
            if case .given = state { true } else { false }
        }
    }

    /// Sets the outcome and resumes the caller. Without effect if one is set already.
    func give(_ outcome: Outcome) {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .given: return nil
            case .open:
                state = .given(outcome)
                return nil
            case .awaited(let continuation):
                state = .given(outcome)
                return continuation
            }
        }
        waiter?.resume(returning: outcome)
    }

    /// Waits for the outcome. Must be called only once.
    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let early: Outcome? = state.withLock { state in
                if case .given(let outcome) = state { return outcome }
                state = .awaited(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }
}
