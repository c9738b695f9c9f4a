// What is sent to the provider as redirect URI, what the browser puts into the Host field, and what is bound: three
// views of one text. They are derived here, once, so that they cannot disagree.

internal import HTTPMessages

/// An address family of loopback.
enum Family: Sendable, Hashable, CaseIterable {
    case ipv4, ipv6

    var address: String { self == .ipv4 ? "127.0.0.1" : "::1" }
}

/// A redirect URI to listen behind: where, and on which terms.
public struct CallbackBinding: Sendable, Equatable {
    /// `http://HOST:` and what follows the port.
    private let prefix: String
    private let suffix: String
    private let statesPort: Bool
    /// Lower-cased; an IPv6 address in brackets.
    private let host: String

    /// The port; 0 for a free one.
    let port: Int
    /// What the browser asks for: an empty path is `/` to it (RFC 9110 section 4.2.3).
    let path: String
    let families: Set<Family>
    /// `form_post` answers are taken here.
    public var acceptsPost: Bool
    /// Whose connections count, beside the daemon's own user (a browser in a container that maps users).
    public var peerUIDs: Set<UInt32>
    /// Nil for a redirect URI: what is served here is a way out, not a way in.
    private(set) var entranceKey: String?

    /// Reads a redirect URI. A free port is asked for by `{port}` or `0` in the port's place; everything else is kept
    /// byte for byte, since providers compare it so. `localhost` is both 127.0.0.1 and ::1 (RFC 8252 section 8.3).
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
            throw .unsuitable(reason: "the redirect URI is not one of http on this machine")
        }
        guard ["127.0.0.1", "::1", "localhost"].contains(host) else {
            throw .unsuitable(reason: "the redirect URI's host is not 127.0.0.1, [::1] or localhost")
        }
        guard url.fragment == nil else { throw .unsuitable(reason: "the redirect URI has a fragment") }
        guard CallbackPages.own[url.path] == nil, !url.path.hasPrefix(CallbackBinding.entrancePath) else {
            throw .unsuitable(reason: "the paths /done, /failed, /noted and /start/ are the listener's own")
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

    /// The default: a free port of 127.0.0.1.
    public init(path: String, acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []) throws(CallbackListenerError) {
        try self.init(parsing: "http://127.0.0.1:{port}\(path)", acceptsPost: acceptsPost, peerUIDs: peerUIDs)
    }

    static let entrancePath = "/start/"

    /// An address that a program is to open, `http://127.0.0.1:PORT/start/KEY`: it answers with a redirect to a page
    /// whose address no argument list has seen. The port is the redirect URI's where that is one of 127.0.0.1, so that
    /// whoever forwards or publishes one port needs no other; else a free one.
    ///
    /// - Parameters:
    ///   - key: of base64url, and secret until it is used.
    ///   - redirectURI: as ``LoopbackListener/open(_:)`` gave it, or one that is no loopback address.
    public static func entrance(
        key: String, beside redirectURI: String, peerUIDs: Set<UInt32> = []
    ) throws(CallbackListenerError) -> CallbackBinding {
        let url = try? WebURL(parsing: redirectURI)
        let isShared = url?.scheme == "http" && (url?.host == "127.0.0.1" || url?.host == "localhost")
        let port = isShared ? url?.port ?? 80 : 0
        let text = "http://127.0.0.1:\(port)\(entrancePath)\(key)"
        guard let own = try? WebURL(parsing: text) else { throw .unsuitable(reason: "the key is none of base64url") }
        var binding = CallbackBinding(text, own, host: "127.0.0.1", acceptsPost: false, peerUIDs: peerUIDs)
        binding.entranceKey = key
        return binding
    }

    /// As it is to be sent.
    func redirectURI(port: Int) -> String { statesPort ? "\(prefix)\(port)\(suffix)" : prefix + suffix }

    /// The Host field of a genuine callback: the scheme's own port is left out by browsers.
    func authority(port: Int) -> String { port == 80 ? host : "\(host):\(port)" }

    private static func replacingPlaceholder(in text: String) -> String {
        // Only in the port's place: a path may not hold braces at all.
        guard let range = text.firstRange(of: ":{port}") else { return text }
        return text[..<range.lowerBound] + ":0" + text[range.upperBound...]
    }
}
