// The one window to the network. What a provider may cost us is bounded here, and nothing that the environment, a
// redirect or a strange URL says can send a secret anywhere but to the URL that was asked for.

internal import CCurl
internal import Glibc
public import HTTPMessages

/// Sends requests with libcurl: many at once, on one thread that exists only while there is something to send.
///
/// HTTP/1.1 over TLS 1.2 or newer; plain HTTP to loopback only; no redirects, proxies, cookies or netrc.
public final class CurlClient: HTTPClient {
    private let loop: CurlLoop

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
        guard let url = try? WebURL(parsing: request.url), url.isSecure, let host = url.host else { throw .refusedURL }
        guard CurlClient.isPrepared else { throw .unreachable(host: host, reason: "libcurl cannot be loaded") }
        guard RequestFields.areSendable(request) else {
            throw .unreachable(host: host, reason: "the request has a header field that cannot be sent")
        }
        let reply = Reply()
        let outcome = await withTaskCancellationHandler {
            loop.submit(CurlLoop.Job(request: request, url: url, host: host, reply: reply))
            return await reply.outcome()
        } onCancel: {
            reply.give(.failure(.cancelled))
            loop.noteCancellation()
        }
        return try outcome.get()
    }

    /// Ends the thread. What is pending, and whatever is sent from now on, fails with `.cancelled`.
    public func shutdown() {
        loop.shutdown()
    }

    /// For tests: true while the thread exists.
    var isRunning: Bool { loop.isRunning }
}
