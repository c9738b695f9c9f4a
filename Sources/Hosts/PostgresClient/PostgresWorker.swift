internal import CLinux
internal import Glibc
internal import RingbackBase
internal import Synchronization

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
