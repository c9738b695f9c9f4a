// Sets every option explicitly where libcurl's default is for a command line tool, which reads proxies and passwords
// from the environment and opens files.

internal import CCurl
internal import Glibc
internal import HTTPMessages
internal import Secrets

/// Sets options of one easy handle and remembers whether all of them could be set.
@safe struct EasyOptions {
    private let easy: UnsafeMutableRawPointer
    private(set) var areAllSet = true

    init(_ easy: UnsafeMutableRawPointer) {
        unsafe self.easy = easy
    }

    /// The rules for a request: where it may go, how long it may take, and how large the response may be.
    mutating func setRules(for url: WebURL, limits: HTTPLimits, keepsPartialBody: Bool) {
        set(CURLOPT_URL, url.text)
        // The caller has checked that `http` is used only with a loopback host. Nothing may change the scheme
        // afterwards.
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
        // HTTP/1.1 has one request at a time on a connection, so libcurl does not repeat a request that got no
        // response. Without an Accept-Encoding option it decodes nothing, see `ContentDecoder`.
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(CURLOPT_TIMEOUT_MS, EasyOptions.milliseconds(limits.timeout))
        set(CURLOPT_CONNECTTIMEOUT_MS, EasyOptions.milliseconds(min(limits.timeout, .seconds(10))))
        // With this option libcurl rejects a body whose stated length is too large before it reads any of it. Where a
        // partial body is wanted, only our own buffer limits the size.
        if !keepsPartialBody { set(CURLOPT_MAXFILESIZE, limits.maxBody) }
        // No signals for name resolution, and no waiting at the end for a resolver thread that is still running.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_NOPROGRESS, 1)
    }

    /// The request is not sent when so much time has passed, suspended time included. The place must outlive the transfer.
    mutating func sendWithin(_ limit: Duration, _ place: UnsafeMutablePointer<ccurl_sending>) {
        note(unsafe ccurl_send_within(easy, Int64(limit / .nanoseconds(1)), place))
    }

    /// Every request gets a tunnel (CONNECT) to its server. The proxy sees the server's name, but nothing of the
    /// request.
    mutating func setProxy(_ proxy: HTTPProxy) {
        set(CURLOPT_PROXY, proxy.url.text)
        // `HTTPProxy.covers` has decided already; the environment must not be asked.
        set(CURLOPT_NOPROXY, "")
        set(CURLOPT_HTTPPROXYTUNNEL, 1)
        set(CURLOPT_HEADEROPT, ccurl_header_separate)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        guard let credentials = proxy.credentials else { return }
        set(CURLOPT_PROXYAUTH, ccurl_auth_basic)
        // libcurl decodes percent signs here in every version; in the options for name and password only the older ones do.
        let user = FormEncoding.escape(credentials.user)
        let password = FormEncoding.escape(credentials.password.revealed())
        set(CURLOPT_PROXYUSERPWD, Secret("\(user):\(password)"))
    }

    /// libcurl parses the system's certificate authorities again if the last parsing is older than this.
    mutating func setAuthoritiesAge(_ seconds: Int) {
        // Exists since libcurl 7.87. Older versions parse the file for each connection.
        _ = unsafe ccurl_set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, seconds)
    }

    /// Attack: a host name that another party chose may resolve to an address of this machine. libcurl asks the
    /// callback about the address that it is going to connect to, so the name cannot resolve differently after the
    /// check. It does not ask about a kept connection, which a request without this rule may have opened: a new one is
    /// used.
    mutating func refuseInside() {
        note(unsafe ccurl_refuse_inside(easy))
        set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Like ``refuseInside()``, for transfers that use kept connections: libcurl asks about their addresses too, before it
    /// sends. `isRefused` is true once an address was refused. It must outlive the transfer.
    mutating func refuseInside(_ isRefused: UnsafeMutablePointer<Bool>) {
        note(unsafe ccurl_refuse_inside_and_kept(easy, isRefused))
    }

    /// The same for a name that must not resolve to an address of a private network either.
    mutating func refusePrivate() {
        note(unsafe ccurl_refuse_private(easy))
        set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// The connection goes to an address, whatever the name resolves to. The list belongs to the caller and must outlive the
    /// transfer; nil means that it could not be allocated.
    mutating func setPlaces(_ list: UnsafeMutablePointer<curl_slist>?) {
        guard let list = unsafe list else {
            areAllSet = false
            return
        }
        note(unsafe ccurl_set_list(easy, CURLOPT_CONNECT_TO, list))
    }

    /// The list for one address, at the port of the URL.
    static func places(_ address: String) -> UnsafeMutablePointer<curl_slist>? {
        let host = address.utf8.contains(UInt8(ascii: ":")) ? "[\(address)]" : address
        return unsafe ccurl_slist_append(nil, "::\(host):")
    }

    /// How the certificate is verified. A configured certificate authority replaces the system's ones.
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
        if !trust.pinnedPublicKeys.isEmpty {
            set(CURLOPT_PINNEDPUBLICKEY, trust.pinnedPublicKeys.joined(separator: ";"))
        }
    }

    /// The method and the body. A request that may change something uses a new connection. On a reused connection that
    /// the server has just closed, libcurl would send the request a second time, and a provider that receives a refresh
    /// token twice treats it as stolen.
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
                note(
                    unsafe ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: base)))
            }
        }
    }

    /// The header fields. The list belongs to the caller and must outlive the transfer; nil means that it could not be
    /// allocated.
    mutating func setFields(_ list: UnsafeMutablePointer<curl_slist>?) {
        guard let list = unsafe list else {
            areAllSet = false
            return
        }
        note(unsafe ccurl_set_list(easy, CURLOPT_HTTPHEADER, list))
    }

    /// The callbacks that receive head and body.
    mutating func setReceiver(
        _ context: UnsafeMutableRawPointer, head: ccurl_data_callback, body: ccurl_data_callback
    ) {
        note(unsafe ccurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION, head))
        note(unsafe ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context))
        note(unsafe ccurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION, body))
        note(unsafe ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context))
    }

    /// The head of the request is zeroed where it was sent from; then `isSent` is true. It must outlive the transfer.
    mutating func eraseSent(_ isSent: UnsafeMutablePointer<Bool>) {
        note(unsafe ccurl_erase_sent(easy, isSent))
    }

    /// The callback that gives the request's body.
    mutating func setSender(_ context: UnsafeMutableRawPointer, body: ccurl_data_callback) {
        note(unsafe ccurl_set_data_callback(easy, CURLOPT_READFUNCTION, body))
        note(unsafe ccurl_set_pointer(easy, CURLOPT_READDATA, context))
    }

    /// Where libcurl writes its words about a failure: `CURL_ERROR_SIZE` bytes, which must outlive the transfer.
    mutating func setErrorWords(_ words: UnsafeMutablePointer<CChar>) {
        note(unsafe ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, words))
    }

    mutating func set(_ option: CURLoption, _ value: Int) {
        note(unsafe ccurl_set_long(easy, option, value))
    }

    /// libcurl keeps a copy of the text.
    mutating func set(_ option: CURLoption, _ value: String) {
        note(unsafe ccurl_set_string(easy, option, value))
    }

    /// libcurl keeps a copy of the text, which it zeroes when it frees it.
    mutating func set(_ option: CURLoption, _ value: Secret) {
        let text = UnsafeMutableRawBufferPointer.allocate(byteCount: value.count + 1, alignment: 1)
        defer {
            if let base = text.baseAddress { unsafe explicit_bzero(base, text.count) }
            unsafe text.deallocate()
        }
        value.withBytes { span in
            unsafe span.withUnsafeBytes { unsafe text.copyBytes(from: $0) }
        }
        unsafe text[value.count] = 0
        note(unsafe ccurl_set_string(easy, option, text.baseAddress?.assumingMemoryBound(to: CChar.self)))
    }

    private mutating func clear(_ option: CURLoption) {
        note(unsafe ccurl_set_string(easy, option, nil))
    }

    /// True if libcurl was built with a file of certificate authorities; otherwise it has only a directory.
    private static let hasAuthorityFile = unsafe ccurl_authority_file() != nil

    private mutating func note(_ result: CURLcode) {
        if result != CURLE_OK { areAllSet = false }
    }

    /// At least 1, because 0 means "no limit" to libcurl.
    private static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(1, Int(clamping: seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}
