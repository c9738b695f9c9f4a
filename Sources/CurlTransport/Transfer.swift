// What libcurl may do for one request is decided here, option by option. If one of them cannot be set, nothing is sent.

internal import CCurl
internal import HTTPMessages
internal import Secrets

/// One request in libcurl's hands, and what has come back so far.
@safe final class Transfer {
    let easy: UnsafeMutableRawPointer
    let host: String
    let reply: Reply
    private let keepsPartialBody: Bool
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    private var head = ResponseHead()
    private var body: ErasedBuffer
    private var isTooLarge = false

    /// Prepares an easy handle; nil if libcurl refuses an option.
    init?(_ job: CurlLoop.Job, userAgent: String) {
        guard let easy = unsafe ccurl_easy_init() else { return nil }
        unsafe self.easy = easy
        host = job.host
        reply = job.reply
        keepsPartialBody = job.request.keepsPartialBody
        body = ErasedBuffer(limit: job.request.limits.maxBody)
        unsafe fieldList = RequestFields.list(of: job.request)
        var options = unsafe EasyOptions(easy)
        options.setRules(for: job.url, limits: job.request.limits, keepsPartialBody: keepsPartialBody)
        if job.request.refusesInsideAddresses { options.refuseInside() }
        options.setTrust(job.request.trust)
        options.setMethod(job.request.method, body: job.request.body)
        options.set(CURLOPT_USERAGENT, userAgent)
        unsafe options.setFields(fieldList)
        unsafe options.setReceiver(Unmanaged.passUnretained(self).toOpaque(), head: receiveHead, body: receiveBody)
        guard options.areAllSet else { return nil }
    }

    deinit {
        unsafe ccurl_easy_cleanup(easy)
        unsafe ccurl_slist_free_all(fieldList)
    }

    /// What the caller gets when libcurl is done.
    func outcome(of result: CURLcode) -> Reply.Outcome {
        guard let failure = failure(result) else {
            // libcurl takes a head that ends in its middle for one without a body.
            guard head.isComplete, let status else { return .failure(.malformed(host: host)) }
            return .success(HTTPResponse(status: status, fields: head.fields, body: body.secret()))
        }
        guard keepsPartialBody, result.breaksOff, head.isComplete, !body.isEmpty, let status,
            (200..<300).contains(status)
        else { return .failure(failure) }
        return .success(
            HTTPResponse(status: status, fields: head.fields, body: body.secret(), truncation: failure))
    }

    /// Why there is no whole answer; nil if there is one.
    private func failure(_ result: CURLcode) -> HTTPClientError? {
        if isTooLarge || head.isTooLarge || result == CURLE_FILESIZE_EXCEEDED { return .tooLarge(host: host) }
        guard result != CURLE_OK else { return nil }
        return HTTPClientError(result, host: host, hasHead: head.isComplete)
    }

    /// The status of the final answer; nil for a number that is none.
    private var status: Int? {
        var status = 0
        guard unsafe ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK, (200...599).contains(status)
        else { return nil }
        return status
    }

    // Both return what they took; anything else ends the transfer.

    fileprivate func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
        unsafe head.take(line.bytes) ? line.count : 0
    }

    fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard unsafe body.append(bytes.bytes) else {
            isTooLarge = true
            return 0
        }
        return bytes.count
    }
}

private let receiveHead: ccurl_data_callback = { bytes, size, count, context in
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.takeHead(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private let receiveBody: ccurl_data_callback = { bytes, size, count, context in
    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return unsafe transfer.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
}
