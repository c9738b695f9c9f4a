internal import CCurl
internal import Glibc
internal import RingbackBase

/// One transfer of libcurl and what has been received so far. If an option cannot be set, nothing is sent.
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
    /// When the request must be sent at the latest; nil if there is no such limit.
    private let sending: UnsafeMutablePointer<ccurl_sending>?
    private let unsentMark: UnsentMark?
    /// libcurl's own words about a failure, which hold what OpenSSL reported.
    private let words: UnsafeMutablePointer<CChar>

    /// Nil if an option cannot be set.
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
            // It resolves the name. The address that we connect to is the proxy's.
            options.setProxy(proxy)
        } else if job.request.refusesPrivateAddresses {
            options.refusePrivate()
        } else if job.request.refusesInsideAddresses {
            options.refuseInside()
        }
        if proxy == nil, let address = job.request.address {
            unsafe placeList = EasyOptions.places(address)
            unsafe options.set(CURLOPT_CONNECT_TO, placeList)
        }
        options.setTrust(job.request.trust)
        if let limit = job.request.limits.sendsWithin, let sending = unsafe sending {
            unsafe options.sendWithin(limit, sending)
        }
        if let age = job.authoritiesAge { options.setAuthoritiesAge(age) }
        options.setMethod(job.request.method, body: job.request.body)
        options.set(CURLOPT_USERAGENT, userAgent)
        unsafe options.set(CURLOPT_HTTPHEADER, fieldList)
        unsafe options.setReceiver(Unmanaged.passUnretained(self).toOpaque(), head: receiveHead, body: receiveBody)
        unsafe options.set(CURLOPT_ERRORBUFFER, words)
        guard options.areAllSet else { return nil }
    }

    deinit {
        unsafe ccurl_easy_cleanup(easy)
        unsafe ccurl_slist_free_all(fieldList)
        unsafe ccurl_slist_free_all(placeList)
        unsafe words.deallocate()
        unsafe sending?.deallocate()
    }

    func outcome(of result: CURLcode) -> TransferOutcome {
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

    /// `failure` is why the response is not complete.
    private func decoded(_ status: Int, _ failure: HTTPClientError?) -> TransferOutcome {
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

    /// Nil if the response is complete.
    private func failure(_ result: CURLcode) -> HTTPClientError? {
        if isTooLarge || head.isTooLarge || result == CURLE_FILESIZE_EXCEEDED { return .tooLarge(host: host) }
        guard result != CURLE_OK else { return nil }
        if let proxy, let failure = proxyFailure(result, proxy) { return failure }
        if result == CURLE_PEER_FAILED_VERIFICATION {
            let code = number(CURLINFO_SSL_VERIFYRESULT) ?? 0
            let reason = VerificationFailure.words(for: code, hasOwnAuthorities: trustsOwnAuthorities)
            return .untrusted(host: host, reason: reason)
        }
        if result == CURLE_SSL_CONNECT_ERROR, unsafe CurlFailure.isPlainText(String(cString: words)) {
            return .wrongScheme(host: host, speaksTLS: false)
        }
        return HTTPClientError(result, host: host, hasHead: head.isComplete)
    }

    /// Nil if the proxy opened a tunnel or was not the cause.
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

    /// A proxy resolves the name itself, so the server's address is not known then.
    private var peer: PeerPlace {
        guard proxy == nil else { return .unknown }
        return switch unsafe ccurl_peer(easy) {
        case ccurl_peer_elsewhere: .elsewhere
        case ccurl_peer_private: .privateNetwork
        case ccurl_peer_inside: .inside
        default: .unknown
        }
    }

    /// A proxy's is of no use.
    private var address: String? {
        guard proxy == nil, let text = unsafe ccurl_address(easy) else { return nil }
        return unsafe String(cString: text)
    }

    private func number(_ name: CURLINFO) -> Int? {
        var value = 0
        return unsafe ccurl_get_long(easy, name, &value) == CURLE_OK ? value : nil
    }

    /// Of the final response; nil if it is not between 200 and 599.
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

/// Sets options of one easy handle, explicitly also where libcurl's default is for a command line tool, which reads
/// proxies and passwords from the environment and opens files.
@safe struct EasyOptions {
    private let easy: UnsafeMutableRawPointer
    private(set) var areAllSet = true

    init(_ easy: UnsafeMutableRawPointer) { unsafe self.easy = easy }

    /// Where a request may go, how long it may take, and how large the response may be.
    mutating func setRules(for url: WebURL, limits: HTTPLimits, keepsPartialBody: Bool) {
        set(CURLOPT_URL, url.text)
        // `http` was checked to have a loopback host. Nothing may change the scheme afterwards.
        set(CURLOPT_PROTOCOLS_STR, url.scheme)
        set(CURLOPT_REDIR_PROTOCOLS_STR, "https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_MAXREDIRS, 0)
        set(CURLOPT_PATH_AS_IS, 1)
        // An empty proxy makes libcurl ignore the proxy variables of the environment.
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOPROXY, "*")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        set(CURLOPT_HTTP09_ALLOWED, 0)
        // With one request at a time on a connection, libcurl does not repeat a request that got no response. Without
        // an Accept-Encoding option it decodes nothing, see `ContentDecoder`.
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(CURLOPT_TIMEOUT_MS, EasyOptions.milliseconds(limits.timeout))
        set(CURLOPT_CONNECTTIMEOUT_MS, EasyOptions.milliseconds(min(limits.timeout, .seconds(10))))
        // libcurl then rejects a body whose stated length is too large before it reads any of it. Where a partial body
        // is wanted, only our own buffer limits the size.
        if !keepsPartialBody { set(CURLOPT_MAXFILESIZE, limits.maxBody) }
        // No signals for name resolution, and no waiting at the end for a resolver thread.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_NOPROGRESS, 1)
    }

    /// See ``HTTPLimits/sendsWithin``. The place must outlive the transfer.
    mutating func sendWithin(_ limit: Duration, _ place: UnsafeMutablePointer<ccurl_sending>) {
        note(unsafe ccurl_send_within(easy, Int64(limit / .nanoseconds(1)), place))
    }

    /// Every request gets a tunnel (CONNECT) to its server. The proxy sees only the server's name.
    mutating func setProxy(_ proxy: HTTPProxy) {
        set(CURLOPT_PROXY, proxy.url.text)
        // `HTTPProxy.covers` has decided already; the environment must not be asked.
        set(CURLOPT_NOPROXY, "")
        set(CURLOPT_HTTPPROXYTUNNEL, 1)
        set(CURLOPT_HEADEROPT, ccurl_header_separate)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        guard let credentials = proxy.credentials else { return }
        set(CURLOPT_PROXYAUTH, ccurl_auth_basic)
        // libcurl decodes percent signs here; in the options for name and password only older versions do.
        let user = FormEncoding.escape(credentials.user)
        let password = FormEncoding.escape(credentials.password.revealed())
        set(CURLOPT_PROXYUSERPWD, Secret("\(user):\(password)"))
    }

    /// libcurl parses the system's certificate authorities again if the last parsing is older than this (libcurl 7.87).
    mutating func setAuthoritiesAge(_ seconds: Int) {
        _ = unsafe ccurl_set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, seconds)
    }

    /// Attack: a host name that another party chose may resolve to an address of this machine. libcurl asks the
    /// callback about the address that it is going to connect to, so the name cannot resolve differently after the
    /// check. It does not ask about a kept connection, which a request without this rule may have opened.
    mutating func refuseInside() {
        note(unsafe ccurl_refuse_inside(easy))
        set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Like ``refuseInside()``, for kept connections: libcurl asks about their addresses too, before it sends.
    /// `isRefused` becomes true when an address was refused. It must outlive the transfer.
    mutating func refuseInside(_ isRefused: UnsafeMutablePointer<Bool>) {
        note(unsafe ccurl_refuse_inside_and_kept(easy, isRefused))
    }

    /// Like ``refuseInside()``, and to no address of a private network.
    mutating func refusePrivate() {
        note(unsafe ccurl_refuse_private(easy))
        set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// `CURLOPT_CONNECT_TO`: to an address, at the port of the URL, whatever the name resolves to.
    static func places(_ address: String) -> UnsafeMutablePointer<curl_slist>? {
        let host = address.utf8.contains(UInt8(ascii: ":")) ? "[\(address)]" : address
        return unsafe ccurl_slist_append(nil, "::\(host):")
    }

    /// A configured certificate authority replaces the system's ones.
    mutating func setTrust(_ trust: ServerTrust) {
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let certificates = trust.certificateAuthorities {
            clear(CURLOPT_CAINFO)
            clear(CURLOPT_CAPATH)
            unsafe certificates.withUnsafeBytes { bytes in
                let base = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                note(unsafe ccurl_set_blob(easy, CURLOPT_CAINFO_BLOB, base, bytes.count))
            }
        } else if EasyOptions.hasAuthorityFile {
            // libcurl caches parsed authorities only if they come from a file alone. Parsing takes 27 ms.
            clear(CURLOPT_CAPATH)
        }
        guard !trust.pinnedPublicKeys.isEmpty else { return }
        set(CURLOPT_PINNEDPUBLICKEY, trust.pinnedPublicKeys.joined(separator: ";"))
    }

    /// A request that may change something uses a new connection. On a reused connection that the server has just
    /// closed, libcurl would send it a second time, and a provider that receives a refresh token twice treats it as
    /// stolen.
    mutating func setMethod(_ method: String, body: Secret?) {
        switch method {
        case "GET" where body == nil: return set(CURLOPT_HTTPGET, 1)
        case "HEAD" where body == nil: return set(CURLOPT_NOBODY, 1)
        default: break
        }
        set(CURLOPT_POST, 1)
        set(CURLOPT_CUSTOMREQUEST, method)
        set(CURLOPT_FRESH_CONNECT, 1)
        let body = body ?? Secret("")
        set(CURLOPT_POSTFIELDSIZE, body.count)
        body.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                // An empty secret has no address. libcurl takes NULL for "read the body from standard input".
                guard let base = bytes.baseAddress, unsafe !bytes.isEmpty else {
                    return set(CURLOPT_COPYPOSTFIELDS, "")
                }
                note(unsafe ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: base)))
            }
        }
    }

    /// The list belongs to the caller and must outlive the transfer; nil means that it could not be allocated.
    mutating func set(_ option: CURLoption, _ list: UnsafeMutablePointer<curl_slist>?) {
        guard let list = unsafe list else {
            areAllSet = false
            return
        }
        note(unsafe ccurl_set_list(easy, option, list))
    }

    mutating func setReceiver(
        _ context: UnsafeMutableRawPointer, head: ccurl_data_callback, body: ccurl_data_callback
    ) {
        unsafe set(CURLOPT_HEADERFUNCTION, head)
        unsafe set(CURLOPT_HEADERDATA, context)
        unsafe set(CURLOPT_WRITEFUNCTION, body)
        unsafe set(CURLOPT_WRITEDATA, context)
    }

    mutating func set(_ option: CURLoption, _ callback: ccurl_data_callback) {
        note(unsafe ccurl_set_data_callback(easy, option, callback))
    }

    /// What the pointer leads to must outlive the transfer.
    mutating func set(_ option: CURLoption, _ pointer: UnsafeMutableRawPointer) {
        note(unsafe ccurl_set_pointer(easy, option, pointer))
    }

    /// The head of the request is zeroed where it was sent from; then `isSent` is true. It must outlive the transfer.
    mutating func eraseSent(_ isSent: UnsafeMutablePointer<Bool>) { note(unsafe ccurl_erase_sent(easy, isSent)) }
    mutating func set(_ option: CURLoption, _ value: Int) { note(unsafe ccurl_set_long(easy, option, value)) }

    /// libcurl keeps a copy of the text.
    mutating func set(_ option: CURLoption, _ value: String) { note(unsafe ccurl_set_string(easy, option, value)) }

    /// libcurl keeps a copy, which it zeroes when it frees it.
    mutating func set(_ option: CURLoption, _ value: Secret) {
        let text = UnsafeMutableRawBufferPointer.allocate(byteCount: value.count + 1, alignment: 1)
        defer {
            if let base = text.baseAddress { unsafe explicit_bzero(base, text.count) }
            unsafe text.deallocate()
        }
        value.withBytes { span in unsafe span.withUnsafeBytes { unsafe text.copyBytes(from: $0) } }
        unsafe text[value.count] = 0
        note(unsafe ccurl_set_string(easy, option, text.baseAddress?.assumingMemoryBound(to: CChar.self)))
    }

    private mutating func clear(_ option: CURLoption) { note(unsafe ccurl_set_string(easy, option, nil)) }

    /// Otherwise libcurl was built with a directory of certificate authorities.
    private static let hasAuthorityFile = unsafe ccurl_authority_file() != nil

    private mutating func note(_ result: CURLcode) { if result != CURLE_OK { areAllSet = false } }

    /// To libcurl 0 means "no limit".
    private static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(1, Int(clamping: seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

/// The header fields of a request. Attack: a line break in a field's value would add a field of someone else's choice
/// (header injection).
enum RequestFields {
    /// The method consists of capital letters, every name is a token (RFC 9110 section 5.6.2), and no value contains a
    /// control character.
    static func areSendable(_ request: HTTPRequest) -> Bool {
        guard !request.method.isEmpty, request.method.utf8.allSatisfy({ $0 >= 0x41 && $0 <= 0x5A }) else {
            return false
        }
        guard request.fields.lines.allSatisfy({ isToken($0.name) && $0.value.utf8.allSatisfy(isValueByte) }) else {
            return false
        }
        return secrets(of: request).allSatisfy { name, value in
            isToken(name)
                && value.withBytes { span in
                    span.byteOffsets.allSatisfy {
                        isValueByte(unsafe span.unsafeLoad(fromByteOffset: $0, as: UInt8.self))
                    }
                }
        }
    }

    private static func secrets(of request: HTTPRequest) -> [(name: String, value: Secret)] {
        (request.authorization.map { [("Authorization", $0)] } ?? []) + request.secretFields
    }

    static func secretNames(of request: HTTPRequest) -> [String] { secrets(of: request).map(\.name) }

    /// The list, which the caller frees; nil if there is no memory.
    static func list(of request: HTTPRequest) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        // Removes the `Expect` field of larger bodies, with which libcurl waits a second for servers that ignore it.
        var lines = ["Expect:"]
        // Removes the form's Content-Type that libcurl would send without a body.
        if request.body == nil, !request.fields.contains("content-type") { lines.append("Content-Type:") }
        for field in request.fields.lines {
            // To libcurl "Name:" means to remove the field; "Name;" sends it empty.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        for line in lines {
            guard let longer = unsafe ccurl_slist_append(list, line) else {
                unsafe ccurl_slist_free_all(list)
                return nil
            }
            unsafe list = longer
        }
        for (name, value) in secrets(of: request) {
            guard let longer = unsafe append(value, named: name, to: list) else {
                unsafe ccurl_slist_free_all(list)
                return nil
            }
            unsafe list = longer
        }
        return unsafe list
    }

    /// Copies the secret into libcurl's memory through a buffer that is zeroed.
    private static func append(
        _ secret: Secret, named name: String, to list: UnsafeMutablePointer<curl_slist>?
    ) -> UnsafeMutablePointer<curl_slist>? {
        let name = Array("\(name): ".utf8)
        let count = name.count + secret.count
        let line = UnsafeMutableRawBufferPointer.allocate(byteCount: count + 1, alignment: 1)
        defer {
            if let base = line.baseAddress { unsafe explicit_bzero(base, line.count) }
            unsafe line.deallocate()
        }
        unsafe line.copyBytes(from: name)
        secret.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                unsafe UnsafeMutableRawBufferPointer(rebasing: line[name.count...]).copyBytes(from: bytes)
            }
        }
        unsafe line[count] = 0
        return unsafe ccurl_slist_append(list, line.baseAddress?.assumingMemoryBound(to: CChar.self))
    }

    /// If libcurl sends the request again it does so without these fields.
    static func erase(_ names: [String], in list: UnsafeMutablePointer<curl_slist>?) {
        var next = unsafe list
        while let entry = unsafe next {
            if let line = unsafe entry.pointee.data,
                names.contains(where: { unsafe strncmp(line, $0 + ":", $0.utf8.count + 1) == 0 })
            {
                unsafe explicit_bzero(line, strlen(line))
            }
            unsafe next = entry.pointee.next
        }
    }

    private static func isValueByte(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

    private static func isToken(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(HTTPFields.isTokenByte)
    }
}
