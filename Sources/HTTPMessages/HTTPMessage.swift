public import Secrets

/// A request to a provider. A value: building one touches no network.
public struct HTTPRequest: Sendable {
    public var method: String
    /// An absolute URL.
    public var url: String
    public var fields: HTTPFields
    /// The `Authorization` field's whole value, apart from the others so that no log of fields can show it.
    public var authorization: Secret?
    /// Bodies carry codes, verifiers and tokens.
    public var body: Secret?
    public var limits: HTTPLimits
    public var trust: ServerTrust
    /// A successful answer that breaks off in its body is handed over as far as it came, see
    /// ``HTTPResponse/truncation``, in place of an error. For answers that cannot be asked for a second time.
    public var keepsPartialBody: Bool
    /// The way to the server.
    public var route = HTTPRoute.standard
    /// The host's name leads to no address of this machine or its link: for URLs that somebody else has chosen.
    public var refusesInsideAddresses = false

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

/// What a request may cost.
public struct HTTPLimits: Sendable, Equatable {
    /// From the first look-up to the last byte. One attempt at a provider takes at most 20 s.
    public var timeout: Duration
    /// Bytes of the answer's body.
    public var maxBody: Int

    public init(timeout: Duration = .seconds(20), maxBody: Int = 1 << 20) {
        self.timeout = timeout
        self.maxBody = maxBody
    }
}

/// Whom to believe when a server shows its certificate.
public struct ServerTrust: Sendable, Equatable {
    /// PEM certificates that replace the system's, read when the configuration was.
    public var certificateAuthorities: [UInt8]?
    /// `sha256//BASE64` of public keys, one of which the server must have; empty for any.
    public var pinnedPublicKeys: [String]

    public init(certificateAuthorities: [UInt8]? = nil, pinnedPublicKeys: [String] = []) {
        self.certificateAuthorities = certificateAuthorities
        self.pinnedPublicKeys = pinnedPublicKeys
    }

    /// The system's certificate authorities, no pins.
    public static let system = ServerTrust()
}

/// A provider's answer.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var fields: HTTPFields
    /// Token answers are secret, so every body is.
    public var body: Secret
    /// Why the body ends before its end; nil for a whole one. Only ever there if the request has
    /// ``HTTPRequest/keepsPartialBody``; whoever reads such an answer as a whole one believes half a sentence.
    public var truncation: HTTPClientError?

    public init(
        status: Int, fields: HTTPFields = HTTPFields(), body: Secret = Secret(""), truncation: HTTPClientError? = nil
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.truncation = truncation
    }

    /// True if the body is only the beginning of one.
    public var isTruncated: Bool { truncation != nil }
}

/// The one window to the network.
public protocol HTTPClient: Sendable {
    /// Sends the request and returns the whole answer, whatever its status. Redirects are answers, never followed.
    /// Less than the whole is returned only to a request with ``HTTPRequest/keepsPartialBody``.
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse
}

/// Why there is no answer. Holds hosts (``WebURL/place``) and reasons, never URLs or bodies.
public enum HTTPClientError: Error, Sendable, Equatable {
    /// No connection: name resolution, refusal, reset, no route.
    case unreachable(host: String, reason: String)
    /// The bound of ``HTTPLimits/timeout`` passed.
    case timedOut(host: String)
    /// The certificate or the handshake was not acceptable.
    case untrusted(host: String, reason: String)
    /// The answer is longer than ``HTTPLimits/maxBody``.
    case tooLarge(host: String)
    /// The answer broke HTTP, or ended before its stated length.
    case malformed(host: String)
    /// The URL is not one we send to: not https, nor http to a loopback address.
    case refusedURL
    /// The caller was cancelled, or the client is shutting down.
    case cancelled
}
