public import Secrets

/// A request to a provider. Building this value sends nothing.
public struct HTTPRequest: Sendable {
    public var method: String
    /// An absolute URL.
    public var url: String
    public var fields: HTTPFields
    /// The whole value of the `Authorization` field. It is not in `fields`, so that logging the fields cannot leak it.
    public var authorization: Secret?
    /// Secret, because bodies carry codes, verifiers and tokens.
    public var body: Secret?
    public var limits: HTTPLimits
    public var trust: ServerTrust
    /// If a successful response ends early in its body, return the part that arrived, with ``HTTPResponse/truncation``
    /// set, instead of throwing. For requests that cannot be repeated, such as a refresh that rotates the refresh
    /// token.
    public var keepsPartialBody: Bool
    /// Which proxy the request uses, if any.
    public var route = HTTPRoute.standard
    /// Do not connect to an address of this machine or to a link-local address, whatever the host name resolves to. For
    /// URLs that come from another party (protection against server-side request forgery).
    public var refusesInsideAddresses = false
    /// Like ``refusesInsideAddresses``, and also do not connect to an address of a private network (RFC 1918, RFC 4193,
    /// RFC 6598).
    public var refusesPrivateAddresses = false
    /// Noted if the request fails before it was sent. Only with ``HTTPLimits/sendsWithin`` is that known.
    public var unsentMark: UnsentMark?
    /// Connect to this address (``HTTPResponse/address``) in place of those that the host's name has; nil to resolve the
    /// name. The certificate is verified for the name. Ignored where a proxy is used, which resolves names itself.
    public var address: String?

    public init(
        method: String = "GET", url: String, fields: HTTPFields = HTTPFields(), authorization: Secret? = nil,
        body: Secret? = nil, limits: HTTPLimits = HTTPLimits(), trust: ServerTrust = .system,
        keepsPartialBody: Bool = false
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.authorization = authorization
        self.body = body
        self.limits = limits
        self.trust = trust
        self.keepsPartialBody = keepsPartialBody
    }
}

/// Limits of time and size for one request.
public struct HTTPLimits: Sendable, Equatable {
    /// From the start of name resolution to the last byte of the response. Default 20 s.
    public var timeout: Duration
    /// The request is not sent later than so long after its start, suspended time included: `timeout` does not count that.
    /// Nil for no such limit.
    public var sendsWithin: Duration?
    /// The maximum size of the response's body, in bytes.
    public var maxBody: Int

    public init(timeout: Duration = .seconds(20), maxBody: Int = 1 << 20) {
        self.timeout = timeout
        self.maxBody = maxBody
    }
}

/// How a server's certificate is verified.
public struct ServerTrust: Sendable, Equatable {
    /// PEM certificates that replace the system's certificate authorities; nil for the system's. The configuration
    /// reader has read the file already.
    public var certificateAuthorities: [UInt8]?
    /// Hashes of public keys as `sha256//BASE64`. The server's key must match one of them; an empty list allows any
    /// key.
    public var pinnedPublicKeys: [String]

    public init(certificateAuthorities: [UInt8]? = nil, pinnedPublicKeys: [String] = []) {
        self.certificateAuthorities = certificateAuthorities
        self.pinnedPublicKeys = pinnedPublicKeys
    }

    /// The system's certificate authorities, no pins.
    public static let system = ServerTrust()
}

/// A provider's response.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var fields: HTTPFields
    /// Every body is a secret, because token responses contain tokens.
    public var body: Secret
    /// The reason why the body is incomplete; nil if it is complete. Set only for requests with
    /// ``HTTPRequest/keepsPartialBody``. Callers that set that flag must check this before they use the body.
    public var truncation: HTTPClientError?
    /// The network to which the server's address belongs.
    public var peer: PeerPlace
    /// The server's address, without a port; nil if it is not known, or cannot be used again.
    public var address: String?

    public init(
        status: Int, fields: HTTPFields = HTTPFields(), body: Secret = Secret(""), truncation: HTTPClientError? = nil,
        peer: PeerPlace = .unknown, address: String? = nil
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.truncation = truncation
        self.peer = peer
        self.address = address
    }

    /// True if the body is incomplete.
    public var isTruncated: Bool { truncation != nil }
}

/// Which network the address of a server belongs to. The raw values are stored.
public enum PeerPlace: String, Sendable, Equatable {
    /// The request went through a proxy, or the address is not known.
    case unknown
    /// An address of the Internet.
    case elsewhere = "internet"
    /// A private network (RFC 1918, RFC 4193, RFC 6598).
    case privateNetwork = "private"
    /// This machine, or a link-local address.
    case inside
}

/// Sends requests to providers. Nothing else opens network connections to providers.
public protocol HTTPClient: Sendable {
    /// Sends the request and returns the complete response, whatever its status. Redirects are returned, never
    /// followed. An incomplete body is returned only if the request has ``HTTPRequest/keepsPartialBody``. Throws if
    /// there is no response or it cannot be used.
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse
}

/// Why there is no usable response. Contains hosts (``WebURL/place``) and reasons, but no URLs and no bodies, which may
/// hold secrets.
public enum HTTPClientError: Error, Sendable, Equatable {
    /// No connection: name resolution failed, connection refused or reset, no route. `proxy` is the `HOST:PORT` of the
    /// proxy that opened no tunnel.
    case unreachable(host: String, reason: String, proxy: String? = nil)
    /// ``HTTPLimits/timeout`` has passed.
    case timedOut(host: String)
    /// The certificate was not accepted or the TLS handshake failed.
    case untrusted(host: String, reason: String)
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme(host: String, speaksTLS: Bool)
    /// The response's body is longer than ``HTTPLimits/maxBody``.
    case tooLarge(host: String)
    /// The response is not valid HTTP, or it ended before the length that its head states.
    case malformed(host: String)
    /// The URL's scheme is not allowed: neither https nor http to a loopback address.
    case refusedURL
    /// The caller was cancelled or the client is shutting down.
    case cancelled
}
