internal import CCurl
internal import Glibc
public import RingbackBase
internal import Synchronization

/// Sends requests with libcurl, many at the same time, on one thread that exists only while there is work. The only
/// code that connects to providers. Neither the environment nor a redirect nor an unusual URL can make it send a secret
/// to another host than that of the request's URL. HTTP/1.1 over TLS 1.2 or newer; plain HTTP to loopback only; no
/// redirects, cookies or netrc; a proxy only if one is configured.
public final class CurlClient: HTTPClient {
    private let loop: CurlLoop
    private let settings = Mutex(Settings())

    private struct Settings {
        var proxy: HTTPProxy?
        /// Parsed certificate authorities that are older are parsed again.
        var authoritiesChanged: ContinuousClock.Instant?
    }

    /// For all requests from now on. The system's certificate authorities are read again. `proxy` is used for requests
    /// whose ``HTTPRequest/route`` is `standard`.
    public func configure(proxy: HTTPProxy?) {
        settings.withLock { settings in
            settings.proxy = proxy
            settings.authoritiesChanged = .now
        }
    }

    /// The thread starts with the first request, and ends after `restsAfter` without requests. The User-Agent is
    /// `ringback/VERSION`.
    public init(version: String, restsAfter: Duration = .seconds(60)) {
        loop = CurlLoop(userAgent: "ringback/\(version)", restsAfter: restsAfter)
    }

    deinit { loop.shutdown() }

    /// Loads libcurl once per process, which takes some milliseconds; otherwise the first request does it. If it
    /// returns false, every request throws `unreachable`. Other threads may run meanwhile: nothing else in the process
    /// uses libcurl, and of the libraries that it initializes only OpenSSL is shared, which locks its own
    /// initialization.
    @discardableResult
    public static func prepare() -> Bool { isPrepared }

    private static let isPrepared: Bool = {
        // libcurl would write the TLS keys of every connection to the file that this variable names.
        unsafe unsetenv("SSLKEYLOGFILE")
        return ccurl_load()
    }()

    /// Cancelling the task ends the transfer. With ``HTTPRequest/keepsPartialBody``, the body of a 2xx response that
    /// ends early after at least one byte (connection lost, time or size limit reached, malformed chunk) is returned as
    /// far as it arrived.
    public func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        guard let url = try? WebURL(parsing: request.url), url.isSecure, url.host != nil else { throw .refusedURL }
        let host = url.place
        guard CurlClient.isPrepared else { throw .unreachable(host: host, reason: "libcurl cannot be loaded") }
        guard RequestFields.areSendable(request) else {
            throw .unreachable(host: host, reason: "the request has a header field that cannot be sent")
        }
        let reply = Reply()
        let outcome = await withTaskCancellationHandler {
            loop.submit(job(request, url, host, reply))
            return await reply.outcome()
        } onCancel: {
            reply.give(.failure(.cancelled))
            loop.noteCancellation()
        }
        return try outcome.get()
    }

    private func job(_ request: HTTPRequest, _ url: WebURL, _ host: String, _ reply: Reply) -> CurlLoop.Job {
        let settings = settings.withLock { $0 }
        let proxy: HTTPProxy? =
            switch request.route {
            case .standard: settings.proxy
            case .direct: nil
            case .proxy(let proxy): proxy
            }
        return CurlLoop.Job(
            request: request, url: url, host: host, proxy: proxy.flatMap { $0.covers(url) ? $0 : nil },
            authoritiesAge: settings.authoritiesChanged.map { Int((ContinuousClock.now - $0).components.seconds) },
            reply: reply)
    }

    /// Pending and later requests fail with `.cancelled`.
    public func shutdown() { loop.shutdown() }

    /// For tests.
    var isRunning: Bool { loop.isRunning }
}

extension CURLcode {
    /// The error can end a body that has begun. The part that arrived is then genuine.
    var breaksOff: Bool {
        switch self {
        // WRITE_ERROR means that our own callback accepted no more bytes.
        case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_OPERATION_TIMEDOUT, CURLE_WRITE_ERROR,
            CURLE_WEIRD_SERVER_REPLY:
            true
        default: false
        }
    }
}

enum CurlFailure {
    /// A TLS handshake failed because the server does not speak TLS, which only the words of OpenSSL say.
    static func isPlainText(_ words: String) -> Bool {
        words.contains("wrong version number") || words.contains("packet length too long")
    }

    /// The body of a 400 of a server that speaks TLS: the texts of nginx, of Apache's httpd and of Go's server.
    static func asksForTLS(_ body: [UInt8]) -> Bool {
        guard body.count <= 4_096 else { return false }
        let text = String(decoding: body, as: UTF8.self)
        return [
            "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled server port",
            "sent an HTTP request to an HTTPS server",
        ].contains { text.contains($0) }
    }
}

extension HTTPClientError {
    /// `hasHead`: the head of the response was complete, so a lost connection truncated the body.
    init(_ result: CURLcode, host: String, hasHead: Bool) {
        switch result {
        case CURLE_OPERATION_TIMEDOUT: self = .timedOut(host: host)
        case CURLE_URL_MALFORMAT: self = .refusedURL
        case CURLE_FILESIZE_EXCEEDED: self = .tooLarge(host: host)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS, CURLE_USE_SSL_FAILED:
            self = .untrusted(host: host, reason: HTTPClientError.words(for: result))
        // UNSUPPORTED_PROTOCOL is what libcurl reports for a response without a status line.
        case CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_UNSUPPORTED_PROTOCOL,
            CURLE_WRITE_ERROR:
            self = .malformed(host: host)
        case CURLE_RECV_ERROR where hasHead: self = .malformed(host: host)
        default: self = .unreachable(host: host, reason: HTTPClientError.words(for: result))
        }
    }

    private static func words(for result: CURLcode) -> String {
        switch result {
        case CURLE_COULDNT_RESOLVE_HOST: "the name could not be resolved"
        case CURLE_COULDNT_CONNECT: "the connection was refused"
        case CURLE_GOT_NOTHING: "the server closed the connection without a response"
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR: "the connection broke"
        case CURLE_OUT_OF_MEMORY: "out of memory"
        // Our own callback, see `EasyOptions.sendWithin`.
        case CURLE_ABORTED_BY_CALLBACK: "the request was not sent, since the time for it was over"
        case CURLE_SSL_CONNECT_ERROR: "the TLS handshake failed"
        case CURLE_PEER_FAILED_VERIFICATION: "the certificate is not trusted for this name"
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: "the server's key is not in pinned_public_keys"
        case CURLE_SSL_CACERT_BADFILE: "the certificate authorities cannot be read"
        // libcurl's own text. It contains no address, URL or header.
        default: unsafe String(cString: ccurl_easy_strerror(result))
        }
    }
}

/// X509_V_ERR_* of OpenSSL's x509_vfy.h.
enum VerificationFailure {
    /// `code` is 0 if the chain is valid but the name does not match. `hasOwnAuthorities`: the account has a `ca_file`.
    static func words(for code: Int, hasOwnAuthorities: Bool) -> String {
        switch code {
        case 9: "the certificate is not valid yet; check this machine's clock"
        case 10: "the certificate has expired; check this machine's clock too"
        // Wrong signature; self-signed, alone or at the end of the chain; unknown issuer.
        case 7, 18, 19, 20, 21:
            hasOwnAuthorities
                ? "the certificate was not issued by an authority in ca_file"
                : "the certificate was issued by an authority that this system does not know. A company's proxy that "
                    + "inspects TLS shows such certificates, and so do servers with an authority of their own: ask for "
                    + "that authority's certificate, and name it with ca_file"
        case 23: "the certificate was revoked"
        default: "the certificate is not trusted for this name"
        }
    }
}
