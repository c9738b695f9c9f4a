internal import CCurl
internal import Glibc
internal import RingbackBase
internal import Synchronization

typealias TransferOutcome = Result<HTTPResponse, HTTPClientError>
typealias Reply = OneOutcome<TransferOutcome>

/// The thread that performs all transfers. It ends after some time without any, so that an idle daemon holds no
/// connections to providers and no parsed certificates.
///
/// A multi handle belongs to one thread. Other threads pass their requests through the mailbox. Race: they call
/// curl_multi_wakeup, which is allowed while the handle exists, under the mailbox's lock, under which the thread
/// removes the handle from the mailbox before it destroys it.
final class CurlLoop: Sendable {
    struct Job: Sendable {
        let request: HTTPRequest
        let url: WebURL
        let host: String
        /// Nil for a direct connection.
        let proxy: HTTPProxy?
        /// In seconds, of the system's parsed certificate authorities; nil for any age.
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
                nonisolated(unsafe) let owned = unsafe multi
                guard BlockingThread.start({ [self] in unsafe run(owned) }) == 0 else {
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

    private func run(_ multi: UnsafeMutableRawPointer) {
        let transfers = unsafe TransferSet(multi: multi, userAgent: userAgent)
        while true {
            let post = collect()
            guard !post.isStopped else { break }
            for job in post.jobs { transfers.add(job) }
            if post.hasCancellations { transfers.dropAbandoned() }
            transfers.advance()
            if !transfers.isEmpty {
                // libcurl wakes up for its sockets and timers by itself. The limit keeps the delay short if that fails.
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

    private func collect() -> (jobs: [Job], hasCancellations: Bool, isStopped: Bool) {
        mailbox.withLock { box in
            let isStopped = if case .stopped = box.phase { true } else { false }
            defer {
                if !isStopped { box.jobs = [] }
                box.hasCancellations = false
            }
            return (box.jobs, box.hasCancellations, isStopped)
        }
    }

    /// True if there is nothing to do. The next job starts a new thread.
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

/// The multi handle and the transfers in it. Used only on the loop's thread.
@safe final class TransferSet {
    private let multi: UnsafeMutableRawPointer
    private let userAgent: String
    private var transfers: [UnsafeMutableRawPointer: Transfer] = unsafe [:]

    /// Owns the multi handle.
    init(multi: UnsafeMutableRawPointer, userAgent: String) {
        unsafe self.multi = multi
        self.userAgent = userAgent
    }

    var isEmpty: Bool { unsafe transfers.isEmpty }

    /// Does nothing if the caller was cancelled already.
    func add(_ job: CurlLoop.Job) {
        guard !job.reply.isGiven else { return }
        func fail(_ reason: String) { job.reply.give(.failure(.unreachable(host: job.host, reason: reason))) }
        guard let transfer = Transfer(job, userAgent: userAgent) else {
            return fail("libcurl rejected an option of the request")
        }
        guard unsafe ccurl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            return fail("libcurl could not start the transfer")
        }
        unsafe transfers[transfer.easy] = transfer
    }

    /// Ends the transfers whose callers were cancelled.
    func dropAbandoned() {
        for transfer in unsafe Array(transfers.values) where transfer.reply.isGiven { remove(transfer) }
    }

    /// Does all work that needs no waiting.
    func advance() {
        var running: Int32 = 0
        guard unsafe ccurl_multi_perform(multi, &running) == CURLM_OK else {
            // libcurl itself failed (out of memory or an internal error): every caller may try again.
            return endAll { .unreachable(host: $0.host, reason: "libcurl failed") }
        }
        var left: Int32 = 0
        while let message = unsafe ccurl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                let transfer = unsafe transfers[easy]
            else { continue }
            // The message is valid only as long as the handle is in the set.
            let outcome = transfer.outcome(of: unsafe ccurl_message_result(message))
            remove(transfer)
            transfer.reply.give(outcome)
        }
    }

    /// Waits until there is work, another thread wakes the handle, or the time has passed.
    func wait(atMost bound: Duration) {
        unsafe ccurl_multi_poll(multi, Int32(clamping: Int(bound / .milliseconds(1))))
    }

    func close() {
        endAll { _ in .cancelled }
        unsafe ccurl_multi_cleanup(multi)
    }

    private func endAll(_ error: (Transfer) -> HTTPClientError) {
        for transfer in unsafe Array(transfers.values) {
            remove(transfer)
            transfer.reply.give(.failure(error(transfer)))
        }
    }

    private func remove(_ transfer: Transfer) {
        unsafe ccurl_multi_remove_handle(multi, transfer.easy)
        unsafe transfers[transfer.easy] = nil
    }
}
