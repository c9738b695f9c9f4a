// The redirect URI that is sent to the provider, the Host field that the browser sends, and the address that is bound
// are derived here from one text, so that they cannot differ.

internal import HTTPMessages

/// An address family of loopback.
enum Family: Sendable, Hashable, CaseIterable {
    case ipv4, ipv6

    var address: String { self == .ipv4 ? "127.0.0.1" : "::1" }
}

/// A redirect URI to listen at, and which requests are accepted there.
public struct CallbackBinding: Sendable, Equatable {
    /// `http://HOST:`, and the text after the port.
    private let prefix: String
    private let suffix: String
    private let statesPort: Bool
    /// Lower-cased; an IPv6 address in brackets.
    private let host: String

    /// The port; 0 for a free one.
    let port: Int
    /// The path that the browser requests: `/` for an empty path (RFC 9110 section 4.2.3).
    let path: String
    private(set) var families: Set<Family>
    /// Whose flow it is, such as an account. If several owners have the same redirect URI, each has rules of its own.
    public var owner = ""
    /// True if POST requests with a form are accepted (`form_post`).
    public var acceptsPost: Bool
    /// Users whose connections are accepted, besides the daemon's own (a browser in a container that maps users).
    public var peerUIDs: Set<UInt32>
    /// The key of a start address; nil for a redirect URI.
    private(set) var entranceKey: String?

    /// Reads a redirect URI. `{port}` or `0` in the port's place asks for a free port. Everything else is kept byte for
    /// byte, since providers compare it that way. `localhost` means both 127.0.0.1 and ::1 (RFC 8252 section 8.3).
    /// Throws `unsuitable`.
    public init(
        parsing redirectURI: String, acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []
    ) throws(CallbackListenerError) {
        let text = CallbackBinding.replacingPlaceholder(in: redirectURI)
        let url: WebURL
        do throws(WebURL.Failure) {
            url = try WebURL(parsing: text)
        } catch {
            throw .unsuitable(reason: "the redirect URI is not a URL")
        }
        guard url.scheme == "http", let host = url.host else {
            throw .unsuitable(reason: "the redirect URI is not an http URL on this machine")
        }
        guard ["127.0.0.1", "::1", "localhost"].contains(host) else {
            throw .unsuitable(reason: "the redirect URI's host is not 127.0.0.1, [::1] or localhost")
        }
        guard url.fragment == nil else { throw .unsuitable(reason: "the redirect URI has a fragment") }
        guard !CallbackPaths.isReserved(url.path) else {
            throw .unsuitable(reason: "the paths \(CallbackPaths.reservedText) are the listener's own")
        }
        self.init(text, url, host: host, acceptsPost: acceptsPost, peerUIDs: peerUIDs)
    }

    private init(_ text: String, _ url: WebURL, host: String, acceptsPost: Bool, peerUIDs: Set<UInt32>) {
        switch host {
        case "127.0.0.1": families = [.ipv4]
        case "::1": families = [.ipv6]
        default: families = [.ipv4, .ipv6]
        }
        self.host = host.contains(":") ? "[\(host)]" : host
        let authority = text.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
        statesPort = url.port != nil
        prefix =
            "http://" + (statesPort ? authority[...(authority.lastIndex(of: ":") ?? authority.startIndex)] : authority)
        suffix = String(text.dropFirst("http://".count + authority.count))
        port = url.port ?? 80
        path = url.path.isEmpty ? "/" : url.path
        self.acceptsPost = acceptsPost
        self.peerUIDs = peerUIDs
    }

    /// The default redirect URI: a free port of 127.0.0.1. Throws `unsuitable` for an invalid path.
    public init(path: String, acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []) throws(CallbackListenerError) {
        try self.init(parsing: "http://127.0.0.1:{port}\(path)", acceptsPost: acceptsPost, peerUIDs: peerUIDs)
    }

    static let entrancePath = CallbackPaths.start

    /// A start address at 127.0.0.1 or [::1], see ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``. If the
    /// redirect URI is at the same address, the port is the same too, so that a user who forwards or publishes ports
    /// needs only one. Otherwise it is a free port. Throws `unsuitable` if the key is not base64url.
    static func entrance(
        key: String, beside redirectURI: String, on family: Family
    ) throws(CallbackListenerError) -> CallbackBinding {
        let url = try? WebURL(parsing: redirectURI)
        let isShared = url?.scheme == "http" && (url?.host == family.address || url?.host == "localhost")
        let port = isShared ? url?.port ?? 80 : 0
        let host = family == .ipv6 ? "[\(family.address)]" : family.address
        let text = "http://\(host):\(port)\(entrancePath)\(key)"
        guard let own = try? WebURL(parsing: text) else { throw .unsuitable(reason: "the key is not base64url") }
        var binding = CallbackBinding(text, own, host: family.address, acceptsPost: false, peerUIDs: [])
        binding.entranceKey = key
        return binding
    }

    /// A site at a free port: see ``LoopbackListener/openSite(_:owner:peerUIDs:serving:)``. Throws `unsuitable` if the
    /// name is no label of a host name.
    static func site(
        _ name: String, _ owner: String, _ peerUIDs: Set<UInt32>, on families: Set<Family>
    ) throws(CallbackListenerError) -> CallbackBinding {
        let text = "http://\(name).localhost:0/"
        guard let url = try? WebURL(parsing: text), let host = url.host, host == "\(name).localhost" else {
            throw .unsuitable(reason: "the name is no label of a host name")
        }
        var binding = CallbackBinding(text, url, host: host, acceptsPost: true, peerUIDs: peerUIDs)
        binding.families = families
        binding.owner = owner
        return binding
    }

    /// The redirect URI with the port filled in, as it is sent to the provider.
    func redirectURI(port: Int) -> String { statesPort ? "\(prefix)\(port)\(suffix)" : prefix + suffix }

    /// The Host field of a genuine callback. Browsers leave out the default port 80.
    func authority(port: Int) -> String { port == 80 ? host : "\(host):\(port)" }

    private static func replacingPlaceholder(in text: String) -> String {
        // Only in the port's place. A path cannot contain braces.
        guard let range = text.firstRange(of: ":{port}") else { return text }
        return text[..<range.lowerBound] + ":0" + text[range.upperBound...]
    }
}
