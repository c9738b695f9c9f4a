// The only code that connects to providers. It limits the time and size of each response. Neither the environment nor a
// redirect nor an unusual URL can make it send a secret to another host than that of the request's URL.

internal import CCurl
internal import Glibc
public import HTTPMessages
internal import Synchronization

/// Sends requests with libcurl, many at the same time, on one thread. The thread exists only while there is work.
///
/// HTTP/1.1 over TLS 1.2 or newer; plain HTTP to loopback only; no redirects, cookies or netrc; a proxy only if one is
/// configured.
public final class CurlClient: HTTPClient {
    private let loop: CurlLoop
    private let settings = Mutex(Settings())

    private struct Settings {
        var proxy: HTTPProxy?
        /// When the configuration was last loaded: parsed certificate authorities that are older are parsed again.
        var authoritiesChanged: ContinuousClock.Instant?
    }

    /// Sets what applies to all requests from now on. The system's certificate authorities are read again.
    ///
    /// - Parameter proxy: used for requests whose ``HTTPRequest/route`` is `standard`; nil for no proxy.
    public func configure(proxy: HTTPProxy?) {
        settings.withLock { settings in
            settings.proxy = proxy
            settings.authoritiesChanged = .now
        }
    }

    /// Creates a client with the User-Agent `ringback/VERSION`. The thread starts with the first request.
    public init(version: String) {
        loop = CurlLoop(userAgent: "ringback/\(version)", restsAfter: .seconds(60))
    }

    /// For tests: the thread ends after `restsAfter` without requests.
    init(version: String, restsAfter: Duration) {
        loop = CurlLoop(userAgent: "ringback/\(version)", restsAfter: restsAfter)
    }

    deinit {
        loop.shutdown()
    }

    /// Loads and initializes libcurl once per process; otherwise the first request does it. Takes some milliseconds.
    /// Returns false if libcurl cannot be loaded; then every request throws `unreachable`.
    ///
    /// Other threads may run meanwhile: nothing else in the process uses libcurl, and of the libraries that it
    /// initializes only OpenSSL is shared, which locks its own initialization. `main` has cleaned the environment
    /// before.
    @discardableResult
    public static func prepare() -> Bool { isPrepared }

    private static let isPrepared: Bool = {
        // libcurl would write the TLS keys of every connection to the file that this variable names.
        unsafe unsetenv("SSLKEYLOGFILE")
        return ccurl_load()
    }()

    /// Sends the request and returns the complete response, whatever its status. Cancelling the task ends the transfer.
    /// Throws ``HTTPClientError`` if there is no usable response.
    ///
    /// With ``HTTPRequest/keepsPartialBody``, the body of a 2xx response that ends early after at least one byte
    /// (connection lost, time or size limit reached, malformed chunk) is returned as far as it arrived.
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

    /// Ends the thread. Pending and later requests fail with `.cancelled`.
    public func shutdown() {
        loop.shutdown()
    }

    /// For tests: true while the thread exists.
    var isRunning: Bool { loop.isRunning }
}
