internal import CCurl
public import RingbackBase

/// Transfers whose bodies flow in both directions, many at the same time, on the thread of who waits for them.
/// Connections are kept and used again; HTTP/2 where the server has it. Redirects are returned. The environment,
/// cookies and netrc are ignored, as by ``CurlClient``.
@safe public final class CurlStreams {
    /// A descriptor that is waited for together with the transfers.
    public struct Watched: Sendable {
        public let descriptor: Int32
        public var wantsInput: Bool
        public var wantsOutput: Bool
        /// The end of a stream counts as input; a broken connection does even where none is wanted.
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

    /// Nil for a request that cannot be sent: not https (or http on loopback), or an invalid field. `length` is the
    /// body's, which ``StreamTransfer/give(_:)`` gives; nil for none, and ``StreamTransfer/unknownLength`` for one that
    /// ``StreamTransfer/endBody()`` ends. The proxy is used if it covers the URL.
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

    /// Waits until a transfer or a descriptor has something to do, another thread wakes it, or the time has passed.
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

/// One transfer of ``CurlStreams``. Used on one thread. Bodies flow through buffers of a limited size. libcurl pauses a
/// direction whose buffer is full (of what was received) or empty (of what is to be sent), and goes on when the owner
/// has taken or given something.
@safe public final class StreamTransfer {
    public enum Outcome: Sendable {
        /// The response is whole.
        case whole
        /// The server has got nothing of the request.
        case notSent(HTTPClientError)
        /// The connection ended before the response was whole.
        case broken(HTTPClientError)
    }

    /// Bytes of each buffer. Larger ones are in no cache of the processor.
    public static let window = 256 << 10
    /// Of a body whose end is not known when the request begins.
    public static let unknownLength = -1
    /// Bytes that libcurl reads at a time.
    private static let piece = 128 << 10
    /// libcurl is not expected to send a request again after that.
    private static let repeatsWithin = Duration.seconds(5)
    let easy: UnsafeMutableRawPointer
    private let host: String
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    /// The names of the fields that are zeroed.
    private let secretNames: [String]
    private var head = ResponseHead()
    private var sending = ByteQueue()
    private var received = ByteQueue()
    /// Nil for a body without a content coding.
    private var decoder: ContentDecoder?
    private var unsent: Int
    /// The head of the request was sent.
    private let isSent: UnsafeMutablePointer<Bool>
    /// An address of this machine was refused.
    private let isRefused: UnsafeMutablePointer<Bool>
    private let begin = ContinuousClock.now
    private var isReceivingPaused = false
    private var isSendingPaused = false
    /// Nil while it goes on.
    public internal(set) var outcome: Outcome?

    /// `length` is the body's; nil for a request without one.
    init?(_ request: HTTPRequest, _ url: WebURL, proxy: HTTPProxy?, length: Int?, userAgent: String) {
        guard let easy = unsafe ccurl_easy_init() else { return nil }
        unsafe self.easy = easy
        unsafe isSent = .allocate(capacity: 1)
        unsafe isSent.initialize(to: false)
        unsafe isRefused = .allocate(capacity: 1)
        unsafe isRefused.initialize(to: false)
        host = url.place
        unsent = length == StreamTransfer.unknownLength ? .max : length ?? 0
        secretNames = RequestFields.secretNames(of: request)
        unsafe fieldList = RequestFields.list(of: request)
        var options = unsafe EasyOptions(easy)
        options.setRules(for: url, limits: request.limits, keepsPartialBody: true)
        // A stream may be silent for hours: only the connection has a time limit.
        options.set(CURLOPT_TIMEOUT_MS, 0)
        options.set(CURLOPT_TCP_KEEPALIVE, 1)
        options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        // A stream comes in few large pieces.
        options.set(CURLOPT_BUFFERSIZE, StreamTransfer.piece)
        // A server that closes idle connections sooner is noticed by libcurl before it uses one.
        options.set(CURLOPT_MAXAGE_CONN, 30)
        if let proxy {
            // It resolves the name itself.
            options.setProxy(proxy)
        } else if request.refusesInsideAddresses {
            unsafe options.refuseInside(isRefused)
        }
        options.setTrust(request.trust)
        options.set(CURLOPT_USERAGENT, userAgent)
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        if let length {
            options.set(CURLOPT_POST, 1)
            options.set(CURLOPT_POSTFIELDSIZE, length)
            unsafe options.set(CURLOPT_READFUNCTION, sendBody)
            unsafe options.set(CURLOPT_READDATA, context)
        } else {
            options.set(request.method == "HEAD" ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1)
        }
        options.set(CURLOPT_CUSTOMREQUEST, request.method)
        unsafe options.set(CURLOPT_HTTPHEADER, fieldList)
        unsafe options.setReceiver(context, head: receiveHead, body: receiveBody)
        unsafe options.eraseSent(isSent)
        guard options.areAllSet else { return nil }
    }

    deinit {
        unsafe ccurl_easy_cleanup(easy)
        unsafe ccurl_slist_free_all(fieldList)
        unsafe isSent.deallocate()
        unsafe isRefused.deallocate()
    }

    /// A stream may last for days, a token may be signed out before. So its token is zeroed once libcurl will not send
    /// it again: when the response begins, or after some seconds, in which a kept connection that the server had closed
    /// was noticed. True if that is done.
    @discardableResult func eraseToken() -> Bool {
        let isSafe = unsafe isSent.pointee && ContinuousClock.now - begin > StreamTransfer.repeatsWithin
        guard outcome != nil || head.isComplete || isSafe else { return false }
        unsafe RequestFields.erase(secretNames, in: fieldList)
        unsafe ccurl_erase_sent(easy, nil)
        return true
    }

    /// Nil until the head is there.
    public var response: (status: Int, fields: HTTPFields)? {
        guard head.isComplete else { return nil }
        var status = 0
        guard unsafe ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK else { return nil }
        return (status, head.fields)
    }

    /// How many bytes of the request's body it takes now.
    public var room: Int { StreamTransfer.window - sending.count }
    public var unsentBytes: Int { sending.count }

    /// The next bytes of the request's body.
    public func give(_ bytes: [UInt8]) {
        sending.append(bytes)
        guard isSendingPaused, outcome == nil else { return }
        isSendingPaused = false
        goOn()
    }

    /// A body of an unknown length has been given as a whole.
    public func endBody() {
        unsent = sending.count
        give([])
    }

    /// The response's body has a content coding that is undone here.
    public var isDecoded: Bool { decoder != nil }

    /// Of the response's body.
    public func take(atMost count: Int) -> [UInt8] {
        let taken = received.take(atMost: count)
        resumeReceiving()
        return taken
    }

    /// Bytes that ``take(atMost:)`` could give.
    public var available: Int { received.count }
    public var isEmpty: Bool { received.isEmpty }

    /// Lends at most so many bytes. They stay until ``drop(_:)``.
    public func withFirst<Result>(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        unsafe received.withFirst(count, body)
    }

    /// There must be so many bytes.
    public func drop(_ count: Int) {
        received.drop(count)
        resumeReceiving()
    }

    private func resumeReceiving() {
        decode()
        guard isReceivingPaused, received.count <= StreamTransfer.window / 2, outcome == nil else { return }
        isReceivingPaused = false
        goOn()
    }

    private func goOn() {
        unsafe ccurl_easy_pause(
            easy, (isReceivingPaused ? ccurl_pause_receiving : 0) | (isSendingPaused ? ccurl_pause_sending : 0))
    }

    func end(_ result: CURLcode) {
        guard result != CURLE_OK else {
            outcome = head.isComplete ? .whole : .broken(.malformed(host: host))
            decode()
            return
        }
        let error = HTTPClientError(result, host: host, hasHead: head.isComplete)
        switch result {
        case CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK:
            let inside = HTTPClientError.unreachable(
                host: host, reason: "its name leads to this machine now, and led to another one at the sign-in")
            outcome = .notSent(unsafe isRefused.pointee ? inside : error)
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_SSL_CONNECT_ERROR,
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CACERT_BADFILE:
            outcome = .notSent(error)
        case CURLE_OPERATION_TIMEDOUT where !head.isComplete:
            // Only the connection has a time limit.
            outcome = .notSent(error)
        default: outcome = .broken(error)
        }
    }

    fileprivate func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
        guard unsafe head.take(line.bytes) else { return 0 }
        if head.isComplete, decoder == nil { decoder = ContentDecoder(head.fields) }
        return line.count
    }

    fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let decoder {
            guard received.count < StreamTransfer.window else {
                isReceivingPaused = true
                return ccurl_paused
            }
            unsafe decoder.give(bytes)
            decode()
            return decoder.hasFailed ? 0 : bytes.count
        }
        guard received.isEmpty || received.count + bytes.count <= StreamTransfer.window else {
            isReceivingPaused = true
            return ccurl_paused
        }
        unsafe received.append(bytes)
        return bytes.count
    }

    /// As much as there is room for. What is left waits in the decoder.
    private func decode() {
        guard let decoder else { return }
        while received.count < StreamTransfer.window {
            let bytes = decoder.take(atMost: StreamTransfer.window - received.count)
            guard !bytes.isEmpty else {
                if case .whole? = outcome, !decoder.isWhole { outcome = .broken(.malformed(host: host)) }
                return
            }
            received.append(bytes)
        }
    }

    fileprivate func giveBody(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard unsent > 0 else { return 0 }
        guard !sending.isEmpty else {
            isSendingPaused = true
            return ccurl_paused
        }
        let part = unsafe UnsafeMutableRawBufferPointer(rebasing: room.prefix(unsent))
        let count = unsafe sending.take(into: part)
        unsent -= count
        return count
    }
}

private let receiveHead: ccurl_data_callback = { bytes, size, count, context in
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<StreamTransfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.takeHead(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private let receiveBody: ccurl_data_callback = { bytes, size, count, context in
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<StreamTransfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private let sendBody: ccurl_data_callback = { bytes, size, count, context in
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<StreamTransfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.giveBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}
