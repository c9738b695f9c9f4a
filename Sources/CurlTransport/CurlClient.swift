// The one window to the network. What a provider may cost us is bounded here, and nothing that the environment, a
// redirect or a strange URL says can send a secret anywhere but to the URL that was asked for.

internal import CCurl
internal import Glibc
public import HTTPMessages
internal import Synchronization

/// Sends requests with libcurl: many at once, on one thread that exists only while there is something to send.
///
/// HTTP/1.1 over TLS 1.2 or newer; plain HTTP to loopback only; no redirects, cookies or netrc, and no proxy but a
/// configured one.
public final class CurlClient: HTTPClient {
    private let loop: CurlLoop
    private let settings = Mutex(Settings())

    private struct Settings {
        var proxy: HTTPProxy?
        /// Since when the system's certificate authorities may be others than those that were parsed.
        var authoritiesChanged: ContinuousClock.Instant?
    }

    /// Takes over what holds for all requests from now on. The system's certificate authorities are read again.
    ///
    /// - Parameter proxy: for requests whose ``HTTPRequest/route`` is `standard`; nil for none.
    public func configure(proxy: HTTPProxy?) {
        settings.withLock { settings in
            settings.proxy = proxy
            settings.authoritiesChanged = .now
        }
    }

    /// Creates a client that calls itself `ringback/VERSION`. Costs nothing: the thread starts with the first request.
    public init(version: String) {
        loop = CurlLoop(userAgent: "ringback/\(version)", restsAfter: .seconds(60))
    }

    /// For tests: a client whose thread ends after another time without requests.
    init(version: String, restsAfter: Duration) {
        loop = CurlLoop(userAgent: "ringback/\(version)", restsAfter: restsAfter)
    }

    deinit {
        loop.shutdown()
    }

    /// Loads and initializes libcurl, once per process; the first request does it otherwise. Takes some milliseconds of
    /// its thread. False if libcurl cannot be loaded: then every request fails and says so.
    ///
    /// Other threads may be at work meanwhile: nothing else in the process uses libcurl, and of what it initializes, only
    /// OpenSSL is shared, which guards itself. `main` has cleaned the environment by then.
    @discardableResult
    public static func prepare() -> Bool { isPrepared }

    private static let isPrepared: Bool = {
        // libcurl would write the keys of every connection to the file that this names.
        unsafe unsetenv("SSLKEYLOGFILE")
        return ccurl_load()
    }()

    /// Sends the request and returns the whole answer, whatever its status. Cancelling the task ends the transfer.
    ///
    /// With ``HTTPRequest/keepsPartialBody``, a body of a 2xx answer that breaks off after its first byte (the connection
    /// ends or breaks, the time or the size allowed is used up, a chunk is malformed) is returned as far as it came.
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

    /// Ends the thread. What is pending, and whatever is sent from now on, fails with `.cancelled`.
    public func shutdown() {
        loop.shutdown()
    }

    /// For tests: true while the thread exists.
    var isRunning: Bool { loop.isRunning }
}
