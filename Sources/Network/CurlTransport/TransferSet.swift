// Used only on the loop's thread, so nothing here is locked.

internal import CCurl
internal import HTTPMessages

/// The multi handle and the transfers in it.
@safe final class TransferSet {
    private let multi: UnsafeMutableRawPointer
    private let userAgent: String
    private var transfers: [UnsafeMutableRawPointer: Transfer] = unsafe [:]

    /// Takes ownership of the multi handle.
    init(multi: UnsafeMutableRawPointer, userAgent: String) {
        unsafe self.multi = multi
        self.userAgent = userAgent
    }

    var isEmpty: Bool { unsafe transfers.isEmpty }

    /// Starts a transfer, unless its caller was cancelled already.
    func add(_ job: CurlLoop.Job) {
        guard !job.reply.isGiven else { return }
        guard let transfer = Transfer(job, userAgent: userAgent) else {
            let reason = "libcurl rejected an option of the request"
            return job.reply.give(.failure(.unreachable(host: job.host, reason: reason)))
        }
        guard unsafe ccurl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            let reason = "libcurl could not start the transfer"
            return job.reply.give(.failure(.unreachable(host: job.host, reason: reason)))
        }
        unsafe transfers[transfer.easy] = transfer
    }

    /// Ends the transfers whose callers were cancelled.
    func dropAbandoned() {
        for transfer in unsafe Array(transfers.values) where transfer.reply.isGiven { remove(transfer) }
    }

    /// Does all work that needs no waiting, and delivers the outcomes of finished transfers.
    func advance() {
        var running: Int32 = 0
        guard unsafe ccurl_multi_perform(multi, &running) == CURLM_OK else { return failAll() }
        var left: Int32 = 0
        while let message = unsafe ccurl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                let transfer = unsafe transfers[easy]
            else { continue }
            // The message is valid only as long as the handle is in the set.
            let result = unsafe ccurl_message_result(message)
            let outcome = transfer.outcome(of: result)
            remove(transfer)
            transfer.reply.give(outcome)
        }
    }

    /// Waits until there is work, another thread wakes the handle, or the time has passed.
    func wait(atMost bound: Duration) {
        let (seconds, attoseconds) = bound.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        unsafe ccurl_multi_poll(multi, Int32(clamping: milliseconds))
    }

    /// Fails the remaining transfers and destroys the handle.
    func close() {
        for transfer in unsafe Array(transfers.values) {
            remove(transfer)
            transfer.reply.give(.failure(.cancelled))
        }
        unsafe ccurl_multi_cleanup(multi)
    }

    /// libcurl itself failed (out of memory or an internal error): every caller gets an error and may try again.
    private func failAll() {
        for transfer in unsafe Array(transfers.values) {
            remove(transfer)
            transfer.reply.give(.failure(.unreachable(host: transfer.host, reason: "libcurl failed")))
        }
    }

    private func remove(_ transfer: Transfer) {
        unsafe ccurl_multi_remove_handle(multi, transfer.easy)
        unsafe transfers[transfer.easy] = nil
    }
}
