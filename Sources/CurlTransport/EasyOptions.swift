// The rules, as libcurl's options. Its defaults are those of a command line tool: they read proxies and passwords from
// the environment and open files.

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

    /// Where the request may go, how long it may take and how much may come back.
    mutating func setRules(for url: WebURL, limits: HTTPLimits, keepsPartialBody: Bool) {
        set(CURLOPT_URL, url.text)
        // `http` was allowed by the caller for this loopback host only; nothing later may change the scheme.
        set(CURLOPT_PROTOCOLS_STR, url.scheme)
        set(CURLOPT_REDIR_PROTOCOLS_STR, "https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_MAXREDIRS, 0)
        set(CURLOPT_PATH_AS_IS, 1)
        // An empty proxy keeps the environment's proxy variables out, whatever their spelling.
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOPROXY, "*")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        set(CURLOPT_HTTP09_ALLOWED, 0)
        // One request per connection at a time: a request that got no answer is never repeated by libcurl behind our
        // back, and no compression means no decompression bombs.
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(CURLOPT_TIMEOUT_MS, EasyOptions.milliseconds(limits.timeout))
        set(CURLOPT_CONNECTTIMEOUT_MS, EasyOptions.milliseconds(min(limits.timeout, .seconds(10))))
        // Stated too large, a body is not even begun: where its beginning is wanted, our own buffer is the bound.
        if !keepsPartialBody { set(CURLOPT_MAXFILESIZE, limits.maxBody) }
        // No signals for name resolution, and no waiting for a resolver thread that a transfer leaves behind.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_NOPROGRESS, 1)
    }

    /// Every request gets a tunnel (CONNECT) to its server, so that the proxy sees the server's name and nothing of the
    /// request.
    mutating func setProxy(_ proxy: HTTPProxy) {
        set(CURLOPT_PROXY, proxy.url.text)
        // Judged already, and the environment is not asked.
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

    /// libcurl parses the system's certificate authorities again if they were parsed longer ago.
    mutating func setAuthoritiesAge(_ seconds: Int) {
        // Known since libcurl 7.87; an older one parses them for each connection.
        _ = unsafe ccurl_set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, seconds)
    }

    /// A name that somebody else chose leads to nobody on this machine (PR-04): what is resolved is what is judged.
    mutating func refuseInside() { note(unsafe ccurl_refuse_inside(easy)) }

    /// Whom to believe. A certificate authority of the configuration's replaces the system's, it does not join them.
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
            // libcurl keeps the parsed authorities for the next connection only if they come from a file alone:
            // 27 ms of parsing once, instead of for every connection.
            clear(CURLOPT_CAPATH)
        }
        if !trust.pinnedPublicKeys.isEmpty {
            set(CURLOPT_PINNEDPUBLICKEY, trust.pinnedPublicKeys.joined(separator: ";"))
        }
    }

    /// The method and the body. A request that may change something gets a connection of its own: on a kept one that
    /// the server has just closed, libcurl would send it a second time, and a refresh token that arrives twice looks
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
                // An empty secret has no address, which libcurl would take for "read it from the standard input".
                guard let base = bytes.baseAddress, unsafe !bytes.isEmpty else {
                    return set(CURLOPT_COPYPOSTFIELDS, "")
                }
                note(
                    unsafe ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: base)))
            }
        }
    }

    /// The header fields. The list stays the caller's and must outlive the transfer; nil for an empty one.
    mutating func setFields(_ list: UnsafeMutablePointer<curl_slist>?) {
        guard let list = unsafe list else {
            areAllSet = false
            return
        }
        note(unsafe ccurl_set_list(easy, CURLOPT_HTTPHEADER, list))
    }

    /// Who takes what comes back.
    mutating func setReceiver(
        _ context: UnsafeMutableRawPointer, head: ccurl_data_callback, body: ccurl_data_callback
    ) {
        note(unsafe ccurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION, head))
        note(unsafe ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context))
        note(unsafe ccurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION, body))
        note(unsafe ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context))
    }

    mutating func set(_ option: CURLoption, _ value: Int) {
        note(unsafe ccurl_set_long(easy, option, value))
    }

    /// libcurl keeps a copy.
    mutating func set(_ option: CURLoption, _ value: String) {
        note(unsafe ccurl_set_string(easy, option, value))
    }

    /// libcurl keeps a copy, which it erases.
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

    /// True if libcurl was built with a file of certificate authorities; elsewhere there is only a directory.
    private static let hasAuthorityFile = unsafe ccurl_authority_file() != nil

    private mutating func note(_ result: CURLcode) {
        if result != CURLE_OK { areAllSet = false }
    }

    /// At least 1: zero would mean "without bound".
    private static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(1, Int(clamping: seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}
