internal import Synchronization

/// A request to a provider. Building this value sends nothing.
public struct HTTPRequest: Sendable {
    public var method: String
    /// An absolute URL.
    public var url: String
    public var fields: HTTPFields
    /// The whole value of the field. It is not in `fields`, so that logging the fields cannot leak it.
    public var authorization: Secret?
    /// Other fields with a secret, which replace none of `fields`.
    public var secretFields: [(name: String, value: Secret)] = []
    /// Secret, because bodies carry codes, verifiers and tokens.
    public var body: Secret?
    public var limits: HTTPLimits
    public var trust: ServerTrust
    /// If a successful response ends early in its body, return the part that arrived, with ``HTTPResponse/truncation``
    /// set. For requests that cannot be repeated, such as a refresh that rotates the refresh token.
    public var keepsPartialBody: Bool
    public var route = HTTPRoute.standard
    /// Against server-side request forgery by a URL of another party: do not connect to an address of this machine or
    /// to a link-local address, whatever the host name resolves to.
    public var refusesInsideAddresses = false
    /// Also not to an address of a private network (RFC 1918, RFC 4193, RFC 6598).
    public var refusesPrivateAddresses = false
    /// Noted if the request fails before it was sent, which only ``HTTPLimits/sendsWithin`` shows.
    public var unsentMark: UnsentMark?
    /// Connect to this address (``HTTPResponse/address``) without resolving the name, for which the certificate is
    /// verified. Ignored where a proxy is used, which resolves names itself.
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

extension Secret {
    /// The value of `Authorization` (RFC 6750 section 2.1).
    package static func bearer(_ token: Secret) -> Secret {
        Secret(bytes: Array("Bearer ".utf8) + token.revealedBytes())
    }

    /// The same for a token that is bound to a key (RFC 9449 section 7.1).
    package static func dpop(_ token: Secret) -> Secret {
        Secret(bytes: Array("DPoP ".utf8) + token.revealedBytes())
    }
}

/// Limits of time and size for one request.
public struct HTTPLimits: Sendable, Equatable {
    /// From the start of name resolution to the last byte of the response. Default 20 s.
    public var timeout: Duration
    /// The request is not sent later than so long after its start, suspended time included: `timeout` does not count
    /// that.
    public var sendsWithin: Duration?
    /// In bytes.
    public var maxBody: Int

    public init(timeout: Duration = .seconds(20), maxBody: Int = 1 << 20) {
        self.timeout = timeout
        self.maxBody = maxBody
    }
}

/// How a server's certificate is verified.
public struct ServerTrust: Sendable, Equatable {
    /// PEM certificates that replace the system's certificate authorities.
    public var certificateAuthorities: [UInt8]?
    /// Hashes of public keys as `sha256//BASE64`. The server's key must match one of them; an empty list allows any key.
    public var pinnedPublicKeys: [String]

    public init(certificateAuthorities: [UInt8]? = nil, pinnedPublicKeys: [String] = []) {
        self.certificateAuthorities = certificateAuthorities
        self.pinnedPublicKeys = pinnedPublicKeys
    }

    public static let system = ServerTrust()
}

/// A provider's response.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var fields: HTTPFields
    /// Every body is a secret, because token responses contain tokens.
    public var body: Secret
    /// Why the body is incomplete; only for requests with ``HTTPRequest/keepsPartialBody``, whose callers must check
    /// it.
    public var truncation: HTTPClientError?
    /// Of the server.
    public var peer: PeerPlace
    /// The server's, without a port; nil if it is not known, or cannot be used again.
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

    public var isTruncated: Bool { truncation != nil }
}

/// The network of a server's address. The raw values are stored.
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
    /// Returns the complete response, whatever its status. Redirects are never followed. Throws if there is no response
    /// or it cannot be used.
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse
}

/// Why there is no usable response. Contains hosts (``WebURL/place``), but no URLs and no bodies, which may hold
/// secrets.
public enum HTTPClientError: Error, Sendable, Equatable {
    /// Name resolution failed, connection refused or reset, no route. `proxy` is the `HOST:PORT` of a proxy that opened
    /// no tunnel.
    case unreachable(host: String, reason: String, proxy: String? = nil)
    /// ``HTTPLimits/timeout`` has passed.
    case timedOut(host: String)
    /// The certificate was not accepted or the TLS handshake failed.
    case untrusted(host: String, reason: String)
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme(host: String, speaksTLS: Bool)
    /// Longer than ``HTTPLimits/maxBody``.
    case tooLarge(host: String)
    /// Not valid HTTP, or it ended before the length that its head states.
    case malformed(host: String)
    /// The URL's scheme is not allowed: neither https nor http to a loopback address.
    case refusedURL
    /// The caller was cancelled or the client is shutting down.
    case cancelled
}

/// Header fields, in order. Names are compared without regard to letter case (RFC 9110 section 5.1).
public struct HTTPFields: Sendable {
    public struct Field: Sendable, Equatable {
        public let name: String
        public let value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var lines: [Field] = []

    public init() {}
    public init(_ pairs: [(String, String)]) { for (name, value) in pairs { append(name, value) } }

    /// Lines with the same name are kept.
    public mutating func append(_ name: String, _ value: String) { lines.append(Field(name, value)) }

    /// Replaces all lines with this name by one.
    public mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    public mutating func remove(_ name: String) { lines.removeAll { HTTPFields.isSame($0.name, name) } }

    public subscript(all name: String) -> [String] {
        lines.filter { HTTPFields.isSame($0.name, name) }.map(\.value)
    }

    /// The first value.
    public subscript(name: String) -> String? { lines.first { HTTPFields.isSame($0.name, name) }?.value }
    public func contains(_ name: String) -> Bool { lines.contains { HTTPFields.isSame($0.name, name) } }

    /// As ASCII, without regard to letter case.
    public static func isSame(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        var others = right.utf8.makeIterator()
        for byte in left.utf8 {
            guard let other = others.next(), byte == other || lowered(byte) == lowered(other) else { return false }
        }
        return true
    }

    /// True for a character of a token, such as a field's name (RFC 9110 section 5.6.2).
    public static func isTokenByte(_ byte: UInt8) -> Bool {
        // A bit for each: letters, digits and !#$%&'*+-.^_`|~. Each byte of a request's head is looked up.
        let (low, high): (UInt64, UInt64) = (0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)
        return byte < 128 && (byte < 64 ? low >> byte : high >> (byte - 64)) & 1 == 1
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}

/// Says of a request that failed that no byte of it was sent. Without the mark it may have been.
public final class UnsentMark: Sendable {
    private let mark = Atomic(false)

    public init() {}
    public var isNoted: Bool { mark.load(ordering: .acquiring) }
    public func note() { mark.store(true, ordering: .releasing) }
}

/// The dates of HTTP fields (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT` (IMF-fixdate). The two obsolete
/// formats are only read: `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
public enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Unix seconds. Nil for another format and for values out of range.
    public static func seconds(of text: String) -> Int? {
        guard let words = words(of: text), let day = number(words.day), words.day.utf8.count <= 2,
            let month = months.firstIndex(of: String(words.month)), words.year.utf8.count == 4,
            let year = number(words.year)
        else { return nil }
        let parts = words.time.split(separator: ":", omittingEmptySubsequences: false)
        let time = parts.compactMap { $0.utf8.count == 2 ? number($0) : nil }
        guard parts.count == 3, time.count == 3, time[0] < 24, time[1] < 60, time[2] < 61, day >= 1,
            day <= Calendar.length(ofMonth: month + 1, year), year >= 1970
        else { return nil }
        return Calendar.day(year, month + 1, day) * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]
    }

    private static func words(of text: String) -> (day: Substring, month: Substring, year: Substring, time: Substring)?
    {
        let words = text.split(separator: " ")
        if words.count == 6, words[0].hasSuffix(","), words[5] == "GMT" {
            return (words[1], words[2], words[3], words[4])
        }
        if words.count == 5, words[0].utf8.count == 3 { return (words[2], words[1], words[4], words[3]) }
        guard words.count == 4, words[0].hasSuffix(","), words[3] == "GMT" else { return nil }
        let date = words[1].split(separator: "-", omittingEmptySubsequences: false)
        guard date.count == 3, date[2].utf8.count == 2, let year = number(date[2]) else { return nil }
        return (date[0], date[1], "\(year < 70 ? 20 : 19)\(date[2])", words[2])
    }

    /// IMF-fixdate. Negative values become 1970-01-01.
    public static func text(of seconds: Int) -> String {
        let (day, time) = (max(0, seconds) / 86_400, max(0, seconds) % 86_400)
        let (year, month, number) = Calendar.date(ofDay: day)
        let date = "\(two(number)) \(months[month - 1]) \(year)"
        // 1970-01-01 was a Thursday.
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][day % 7]
        return "\(weekday), \(date) \(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
    private static func number(_ text: Substring) -> Int? { text.utf8.allSatisfy(\.isDigit) ? Int(text) : nil }
}
