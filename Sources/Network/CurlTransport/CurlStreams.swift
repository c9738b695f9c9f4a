internal import CCurl
public import HTTPMessages

/// Transfers whose bodies flow in both directions, many at the same time, on the thread of who waits for them together
/// with its own descriptors. Connections are kept and used again; HTTP/2 where the server has it. Redirects are returned.
/// The environment, cookies and netrc are ignored, as by ``CurlClient``.
@safe public final class CurlStreams {
    /// A descriptor that is waited for together with the transfers.
    public struct Watched: Sendable {
        public let descriptor: Int32
        public var wantsInput: Bool
        public var wantsOutput: Bool
        /// What the wait found. The end of a stream counts as input.
        public fileprivate(set) var hasInput = false
        public fileprivate(set) var hasOutput = false

        public init(_ descriptor: Int32, input: Bool = true, output: Bool = false) {
            self.descriptor = descriptor
            wantsInput = input
            wantsOutput = output
        }
    }

    /// Wakes the wait of another thread.
    @safe public struct Waker: @unchecked Sendable {
        fileprivate let multi: UnsafeMutableRawPointer

        /// May be called from any thread, as long as the transfers exist.
        public func wake() { unsafe ccurl_multi_wakeup(multi) }
    }

    private let multi: UnsafeMutableRawPointer
    private let userAgent: String
    private var transfers: [UnsafeMutableRawPointer: StreamTransfer] = unsafe [:]
    /// Transfers that still hold their token.
    private var unerased: [StreamTransfer] = []

    /// Nil if libcurl cannot be loaded.
    public init?(version: String) {
        guard CurlClient.prepare(), let multi = unsafe ccurl_multi_init() else { return nil }
        unsafe self.multi = multi
        userAgent = "ringback/\(version)"
    }

    deinit {
        for transfer in unsafe Array(transfers.values) { unsafe ccurl_multi_remove_handle(multi, transfer.easy) }
        unsafe ccurl_multi_cleanup(multi)
    }

    public var waker: Waker { unsafe Waker(multi: multi) }

    /// Starts a transfer. Nil for a request that cannot be sent: not https (or http on loopback), or a field that is no
    /// field.
    ///
    /// - Parameters:
    ///   - length: bytes of the body; nil for none. The body of the request itself is not used.
    ///   - proxy: the proxy, if it is to be used for this URL.
    public func start(_ request: HTTPRequest, length: Int?, proxy: HTTPProxy? = nil) -> StreamTransfer? {
        guard let url = try? WebURL(parsing: request.url), url.isSecure, url.host != nil,
            RequestFields.areSendable(request),
            let transfer = StreamTransfer(request, url, proxy: proxy, length: length, userAgent: userAgent),
            unsafe ccurl_multi_add_handle(multi, transfer.easy) == CURLM_OK
        else { return nil }
        unsafe transfers[transfer.easy] = transfer
        unerased.append(transfer)
        return transfer
    }

    /// Ends a transfer that nobody wants any more.
    public func cancel(_ transfer: StreamTransfer) {
        guard unsafe transfers.removeValue(forKey: transfer.easy) != nil else { return }
        unsafe ccurl_multi_remove_handle(multi, transfer.easy)
        transfer.eraseToken()
        unerased.removeAll { $0 === transfer }
    }

    /// Does all work that needs no waiting.
    public func advance() {
        var running: Int32 = 0
        unsafe ccurl_multi_perform(multi, &running)
        var left: Int32 = 0
        while let message = unsafe ccurl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                let transfer = unsafe transfers[easy]
            else { continue }
            // The message is valid only as long as the handle is in the set.
            transfer.end(unsafe ccurl_message_result(message))
            cancel(transfer)
        }
        unerased.removeAll { $0.eraseToken() }
    }

    /// Waits until a transfer or one of the descriptors has something to do, another thread wakes it, or the time has
    /// passed.
    public func wait(_ watched: inout [Watched], atMost milliseconds: Int) {
        var entries = watched.map { entry in
            curl_waitfd(
                fd: entry.descriptor,
                events: Int16((entry.wantsInput ? CURL_WAIT_POLLIN : 0) | (entry.wantsOutput ? CURL_WAIT_POLLOUT : 0)),
                revents: 0)
        }
        // Whether a token may be zeroed is looked at each second.
        let bound = unerased.isEmpty ? milliseconds : min(milliseconds, 1_000)
        unsafe ccurl_multi_poll_with(multi, &entries, UInt32(entries.count), Int32(clamping: bound))
        for index in watched.indices {
            let found = Int32(entries[index].revents)
            watched[index].hasInput = found & CURL_WAIT_POLLIN != 0
            watched[index].hasOutput = found & CURL_WAIT_POLLOUT != 0
        }
    }
}
