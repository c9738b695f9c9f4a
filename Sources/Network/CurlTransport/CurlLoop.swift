// A multi handle belongs to one thread. Other threads pass their requests through the mailbox. The only libcurl
// function that they call is curl_multi_wakeup, which is allowed from any thread while the handle exists. Race: it is
// called under the mailbox's lock, and the thread removes the handle from the mailbox under the same lock before it
// destroys it.

internal import CCurl
internal import Glibc
internal import HTTPMessages
internal import Synchronization

/// The thread that performs all transfers. It starts with the first one and ends after some time without any, so that
/// an idle daemon holds no connections to providers and no parsed certificates.
final class CurlLoop: Sendable {
    /// A request on its way to the thread.
    struct Job: Sendable {
        let request: HTTPRequest
        let url: WebURL
        let host: String
        /// Nil for a direct connection.
        let proxy: HTTPProxy?
        /// The maximum age in seconds of the system's parsed certificate authorities; nil for any age.
        let authoritiesAge: Int?
        let reply: Reply
    }

    @safe private enum Phase {
        case resting
        case running(UnsafeMutableRawPointer)
        case stopped
    }

    private struct Mailbox {
        var phase = Phase.resting
        var jobs: [Job] = []
        var hasCancellations = false
    }

    private let mailbox = Mutex(Mailbox())
    private let userAgent: String
    private let restsAfter: Duration

    init(userAgent: String, restsAfter: Duration) {
        self.userAgent = userAgent
        self.restsAfter = restsAfter
    }

    var isRunning: Bool {
        mailbox.withLock { box in
            if case .running = box.phase { true } else { false }
        }
    }

    /// Puts the job into the mailbox and wakes or starts the thread.
    func submit(_ job: Job) {
        let refusal: HTTPClientError? = mailbox.withLock { box in
            switch box.phase {
            case .stopped: return .cancelled
            case .running(let multi):
                box.jobs.append(job)
                unsafe ccurl_multi_wakeup(multi)
                return nil
            case .resting:
                guard let multi = unsafe ccurl_multi_init() else {
                    return .unreachable(host: job.host, reason: "out of memory")
                }
                box.phase = unsafe .running(multi)
                box.jobs.append(job)
                guard unsafe startThread(owning: multi) else {
                    box.phase = .resting
                    box.jobs = []
                    unsafe ccurl_multi_cleanup(multi)
                    return .unreachable(host: job.host, reason: "no thread could be started")
                }
                return nil
            }
        }
        if let refusal { job.reply.give(.failure(refusal)) }
    }

    /// Makes the thread look for transfers whose callers were cancelled.
    func noteCancellation() {
        mailbox.withLock { box in
            guard case .running(let multi) = box.phase else { return }
            box.hasCancellations = true
            unsafe ccurl_multi_wakeup(multi)
        }
    }

    /// Ends the thread, which fails the pending requests.
    func shutdown() {
        mailbox.withLock { box in
            if case .running(let multi) = box.phase { unsafe ccurl_multi_wakeup(multi) }
            box.phase = .stopped
        }
    }

    // MARK: The thread

    /// The argument of the new thread.
    @safe private final class Inheritance {
        let loop: CurlLoop
        let multi: UnsafeMutableRawPointer

        init(loop: CurlLoop, multi: UnsafeMutableRawPointer) {
            self.loop = loop
            unsafe self.multi = multi
        }
    }

    private func startThread(owning multi: UnsafeMutableRawPointer) -> Bool {
        // The thread inherits a mask that blocks every signal: a broken TLS connection must not end the process by
        // SIGPIPE, and other signals are handled by the thread that waits for them.
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        let retained = unsafe Unmanaged.passRetained(Inheritance(loop: self, multi: multi))
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            if let context = unsafe context {
                let inheritance = unsafe Unmanaged<Inheritance>.fromOpaque(context).takeRetainedValue()
                unsafe inheritance.loop.run(inheritance.multi)
            }
            return nil
        }
        guard unsafe pthread_create(&thread, nil, entry, retained.toOpaque()) == 0 else {
            unsafe retained.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    private func run(_ multi: UnsafeMutableRawPointer) {
        let transfers = unsafe TransferSet(multi: multi, userAgent: userAgent)
        while true {
            let post = collect()
            guard !post.isStopped else { break }
            for job in post.jobs { transfers.add(job) }
            if post.hasCancellations { transfers.dropAbandoned() }
            transfers.advance()
            if !transfers.isEmpty {
                // libcurl wakes up for its sockets and timers by itself. The limit of 1 s keeps the delay short if that
                // fails.
                transfers.wait(atMost: .seconds(1))
                continue
            }
            let start = ContinuousClock.now
            transfers.wait(atMost: restsAfter)
            if ContinuousClock.now - start >= restsAfter, rest() { break }
        }
        transfers.close()
        failJobs()
    }

    private struct Post {
        var jobs: [Job]
        var hasCancellations: Bool
        var isStopped: Bool
    }

    private func collect() -> Post {
        mailbox.withLock { box in
            let isStopped = if case .stopped = box.phase { true } else { false }
            defer {
                if !isStopped { box.jobs = [] }
                box.hasCancellations = false
            }
            return Post(jobs: box.jobs, hasCancellations: box.hasCancellations, isStopped: isStopped)
        }
    }

    /// If there is nothing to do, removes the handle from the mailbox and returns true. The next job starts a new
    /// thread.
    private func rest() -> Bool {
        mailbox.withLock { box in
            guard box.jobs.isEmpty, case .running = box.phase else { return false }
            box.phase = .resting
            return true
        }
    }

    /// After a shutdown: fails the jobs that the thread did not take.
    private func failJobs() {
        let jobs = mailbox.withLock { box in
            guard case .stopped = box.phase else { return [Job]() }
            defer { box.jobs = [] }
            return box.jobs
        }
        for job in jobs { job.reply.give(.failure(.cancelled)) }
    }
}
