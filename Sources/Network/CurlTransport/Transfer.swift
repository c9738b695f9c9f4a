// Sets the libcurl options of one request. If one of them cannot be set, nothing is sent.

internal import CCurl
internal import HTTPMessages
internal import Secrets

/// One transfer of libcurl and what has been received so far.
@safe final class Transfer {
    let easy: UnsafeMutableRawPointer
    let host: String
    let reply: Reply
    private let proxy: HTTPProxy?
    private let isSecure: Bool
    private let trustsOwnAuthorities: Bool
    private let keepsPartialBody: Bool
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    private var placeList: UnsafeMutablePointer<curl_slist>?
    private var head = ResponseHead()
    private var body: [UInt8] = []
    private let maxBody: Int
    private var isTooLarge = false
    /// When the request must be sent at the latest, and whether it was begun to be sent; nil if there is no such limit.
    private let sending: UnsafeMutablePointer<ccurl_sending>?
    private let unsentMark: UnsentMark?
    /// libcurl's own words about a failure, which hold what OpenSSL reported.
    private let words: UnsafeMutablePointer<CChar>

    /// Prepares an easy handle. Nil if an option cannot be set.
    init?(_ job: CurlLoop.Job, userAgent: String) {
        guard let easy = unsafe ccurl_easy_init() else { return nil }
        unsafe self.easy = easy
        if job.request.limits.sendsWithin != nil {
            let place = UnsafeMutablePointer<ccurl_sending>.allocate(capacity: 1)
            unsafe place.initialize(to: ccurl_sending())
            unsafe sending = place
        } else {
            unsafe sending = nil
        }
        unsentMark = job.request.unsentMark
        unsafe words = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        host = job.host
        reply = job.reply
        proxy = job.proxy
        isSecure = job.url.scheme == "https"
        trustsOwnAuthorities = job.request.trust.certificateAuthorities != nil
        keepsPartialBody = job.request.keepsPartialBody
        maxBody = job.request.limits.maxBody
        unsafe fieldList = RequestFields.list(of: job.request)
        var options = unsafe EasyOptions(easy)
        options.setRules(for: job.url, limits: job.request.limits, keepsPartialBody: keepsPartialBody)
        if let proxy = job.proxy {
            // The proxy resolves the host's name. The address that we connect to is the proxy's, so it cannot be
            // checked here.
            options.setProxy(proxy)
        } else if job.request.refusesPrivateAddresses {
            options.refusePrivate()
        } else if job.request.refusesInsideAddresses {
            options.refuseInside()
        }
        if proxy == nil, let address = job.request.address {
            unsafe placeList = EasyOptions.places(address)
            unsafe options.setPlaces(placeList)
        }
        options.setTrust(job.request.trust)
        if let limit = job.request.limits.sendsWithin, let sending = unsafe sending {
            unsafe options.sendWithin(limit, sending)
        }
        if let age = job.authoritiesAge { options.setAuthoritiesAge(age) }
        options.setMethod(job.request.method, body: job.request.body)
        options.set(CURLOPT_USERAGENT, userAgent)
        unsafe options.setFields(fieldList)
        unsafe options.setReceiver(Unmanaged.passUnretained(self).toOpaque(), head: receiveHead, body: receiveBody)
        unsafe options.setErrorWords(words)
        guard options.areAllSet else { return nil }
    }

    deinit {
        unsafe ccurl_easy_cleanup(easy)
        unsafe ccurl_slist_free_all(fieldList)
        unsafe ccurl_slist_free_all(placeList)
        unsafe words.deallocate()
        unsafe sending?.deallocate()
    }

    /// The outcome for the caller after libcurl has finished.
    func outcome(of result: CURLcode) -> Reply.Outcome {
        guard let failure = failure(result) else {
            // libcurl treats a head that is cut off as a response without a body.
            guard head.isComplete, let status else { return .failure(.malformed(host: host)) }
            if !isSecure, status == 400, CurlFailure.asksForTLS(body) {
                return .failure(.wrongScheme(host: host, speaksTLS: true))
            }
            return decoded(status, nil)
        }
        if let sending = unsafe sending, unsafe !sending.pointee.has_begun { unsentMark?.note() }
        guard keepsPartialBody, result.breaksOff, head.isComplete, !body.isEmpty, let status,
            (200..<300).contains(status)
        else { return .failure(failure) }
        return decoded(status, failure)
    }

    /// The response with a decoded body; `failure` is why it is not complete.
    private func decoded(_ status: Int, _ failure: HTTPClientError?) -> Reply.Outcome {
        var response = HTTPResponse(status: status, fields: head.fields, truncation: failure, peer: peer)
        if failure == nil { response.address = address }
        let mayBreakOff = keepsPartialBody && (200..<300).contains(status)
        switch ContentDecoder.decode(body, head.fields, limit: maxBody) {
        case .asItCame:
            response.body = Secret(bytes: body)
            return .success(response)
        case .whole(let bytes): response.body = Secret(bytes: bytes)
        case .beginning(let bytes) where mayBreakOff:
            response.body = Secret(bytes: bytes)
            response.truncation = failure ?? .malformed(host: host)
        // An error's status counts, even if its text cannot be read.
        case .beginning where status >= 300:
            response.body = Secret(bytes: body)
            return .success(response)
        case .beginning: return .failure(failure ?? .malformed(host: host))
        case .tooLarge(let bytes) where mayBreakOff:
            response.body = Secret(bytes: bytes)
            response.truncation = .tooLarge(host: host)
        case .tooLarge: return .failure(.tooLarge(host: host))
        }
        response.fields.remove("Content-Encoding")
        response.fields.remove("Content-Length")
        return .success(response)
    }

    /// Why the response is not complete; nil if it is.
    private func failure(_ result: CURLcode) -> HTTPClientError? {
        if isTooLarge || head.isTooLarge || result == CURLE_FILESIZE_EXCEEDED { return .tooLarge(host: host) }
        guard result != CURLE_OK else { return nil }
        if let proxy, let failure = proxyFailure(result, proxy) { return failure }
        if result == CURLE_PEER_FAILED_VERIFICATION {
            return .untrusted(
                host: host,
                reason: VerificationFailure.words(
                    for: number(CURLINFO_SSL_VERIFYRESULT) ?? 0, hasOwnAuthorities: trustsOwnAuthorities))
        }
        if result == CURLE_SSL_CONNECT_ERROR, unsafe CurlFailure.isPlainText(String(cString: words)) {
            return .wrongScheme(host: host, speaksTLS: false)
        }
        return HTTPClientError(result, host: host, hasHead: head.isComplete)
    }

    /// The failure if the proxy opened no tunnel; nil if it did or was not the cause.
    private func proxyFailure(_ result: CURLcode, _ proxy: HTTPProxy) -> HTTPClientError? {
        let name = "\(proxy.url.host ?? ""):\(proxy.url.port.map(String.init) ?? "80")"
        return proxyReason(result, name, proxy).map { .unreachable(host: host, reason: $0, proxy: name) }
    }

    private func proxyReason(_ result: CURLcode, _ name: String, _ proxy: HTTPProxy) -> String? {
        switch number(CURLINFO_HTTP_CONNECTCODE) ?? 0 {
        case 200..<300: return nil
        case 407:
            return proxy.credentials == nil
                ? "the proxy \(name) requires a user name and a password (proxy_credentials_file)"
                : "the proxy \(name) did not accept the user name and password in proxy_credentials_file"
        case 0: break
        case let status: return "the proxy \(name) responded with HTTP \(status) to CONNECT"
        }
        switch result {
        case CURLE_COULDNT_RESOLVE_PROXY: return "the name of the proxy \(name) could not be resolved"
        case CURLE_COULDNT_CONNECT: return "the connection to the proxy \(name) was refused"
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_UNSUPPORTED_PROTOCOL,
            CURLE_WEIRD_SERVER_REPLY:
            return "\(name) does not respond like an HTTP proxy"
        default: return nil
        }
    }

    /// Where the server is. A proxy resolves the name itself, so the server's address is not known then.
    private var peer: PeerPlace {
        guard proxy == nil else { return .unknown }
        return switch unsafe ccurl_peer(easy) {
        case ccurl_peer_elsewhere: .elsewhere
        case ccurl_peer_private: .privateNetwork
        case ccurl_peer_inside: .inside
        default: .unknown
        }
    }

    /// The server's address. A proxy's is of no use.
    private var address: String? {
        guard proxy == nil, let text = unsafe ccurl_address(easy) else { return nil }
        return unsafe String(cString: text)
    }

    private func number(_ name: CURLINFO) -> Int? {
        var value = 0
        return unsafe ccurl_get_long(easy, name, &value) == CURLE_OK ? value : nil
    }

    /// The status of the final response; nil if it is not between 200 and 599.
    private var status: Int? {
        number(CURLINFO_RESPONSE_CODE).flatMap { (200...599).contains($0) ? $0 : nil }
    }

    // Both return the number of bytes that they took. Any other number ends the transfer.

    fileprivate func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
        unsafe head.take(line.bytes) ? line.count : 0
    }

    fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        let fitting = unsafe bytes.prefix(maxBody - body.count)
        unsafe body.append(contentsOf: fitting)
        guard unsafe fitting.count == bytes.count else {
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
