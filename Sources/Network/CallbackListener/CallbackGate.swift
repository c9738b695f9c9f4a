internal import Glibc
internal import LocalHTTP
internal import RingbackBase

/// Checks the requests to one port. Rejected are: other users of the machine; a web page whose name was rebound to this
/// address (DNS rebinding); a page that loads the address as an image or a frame; a browser that prefetches. The
/// responses do not show whether a flow is pending or where.
struct CallbackGate {
    enum Verdict {
        case refused(Int)
        case page(PageContent)
        case callback(CallbackArrival)
        /// A request with an obstacle, and the status of the response; nil for the page of its flow, or as
        /// ``unmatched``.
        case stray(CallbackArrival, otherwise: Int?)
        case entrance(EntranceVisit)
        case site(LocalSite)
        /// The path has no pending flow. The query may contain a code, so the browser is redirected to remove it from
        /// the address bar.
        case unmatched
    }

    let port: CallbackPort
    let user: UInt32

    /// `owner` is the uid that owns the client's socket; nil if it is unknown.
    func judge(_ request: ServerRequest, owner: UInt32?) -> Verdict {
        let hosts = request.fields[all: "Host"]
        let place = CallbackPort.Place(authority: hosts.first ?? "", path: request.path)
        let waiting = port.site(at: place.authority) ?? port.waiting[place]
        // Other users may learn the state from an argument list, but they cannot own a socket of this user.
        guard let owner, owner == user || peerUIDs(at: place.path, waiting).contains(owner) else {
            guard request.method == "GET", let key = waiting?.entranceKey else { return .refused(404) }
            return .entrance(.foreign(key: key, uid: owner))
        }
        // Only the owners whose own rule accepts this request: no rule gives access to another owner's flow.
        let rules = waiting?.rules.filter { owner == user || $0.value.peerUIDs.contains(owner) } ?? [:]
        // DNS rebinding: the name evil.example may resolve to this address, but the Host field still says evil.example.
        guard hosts.count == 1, port.authorities[place.authority]?.contains(request.family) == true else {
            return .refused(421)
        }
        // A service worker would outlive the flow and see later requests to this port, also those of other programs.
        guard !request.fields.contains("Service-Worker") else { return .refused(404) }
        switch request.method {
        case "GET": break
        case "POST" where rules.contains(where: { $0.value.acceptsPost }): break
        case "POST" where isForm(request.fields): return stray(request, place, .posted, owner, status: 405)
        default: return .refused(405)
        }
        guard !isPrefetch(request.fields) else { return .refused(404) }
        // 404, not 403: a page that probes must not learn from the status where a flow is pending.
        guard isTopLevelNavigation(request.fields) else {
            return stray(request, place, .notNavigated, owner, status: 404)
        }
        guard let waiting else {
            if let page = port.page(at: place.path) { return .page(page) }
            return request.query == nil ? .refused(404) : stray(request, place, .otherPath, owner, status: nil)
        }
        if let site = waiting.site { return .site(site) }
        if let key = waiting.entranceKey { return .entrance(.opened(key: key)) }
        let url = waiting.base + (request.query.map { "?\($0)" } ?? "")
        guard request.method == "POST" else {
            return .callback(CallbackArrival(url: url, form: nil, owners: Set(rules.keys)))
        }
        guard isForm(request.fields) else { return .refused(415) }
        let posting = rules.filter(\.value.acceptsPost).keys
        return .callback(CallbackArrival(url: url, form: request.body, owners: Set(posting)))
    }

    /// A request that completes no flow, but may have come from the browser of one: then it has the flow's key, and the
    /// flow says why it was refused. `status` is nil for a page.
    private func stray(
        _ request: ServerRequest, _ place: CallbackPort.Place, _ obstacle: CallbackArrival.Obstacle, _ owner: UInt32,
        status: Int?
    ) -> Verdict {
        guard port.site(at: place.authority) == nil, port.waiting[place]?.entranceKey == nil else {
            return status.map { .refused($0) } ?? .unmatched
        }
        let rules = port.waiting.values.flatMap { Array($0.rules) }
        let owners = rules.filter { owner == user || $0.value.peerUIDs.contains(owner) }.map(\.key)
        let url = "http://\(place.authority)\(place.path)" + (request.query.map { "?\($0)" } ?? "")
        let form = request.method == "POST" ? request.body : nil
        let arrival = CallbackArrival(url: url, form: form, owners: Set(owners), obstacle: obstacle)
        return .stray(arrival, otherwise: status)
    }

    /// The users, beside the daemon's own, whose requests are accepted. The pages, to which a callback redirects, are
    /// served to every user whose callbacks are accepted on this port.
    private func peerUIDs(at path: String, _ waiting: CallbackPort.Waiting?) -> Set<UInt32> {
        if let waiting { return waiting.peerUIDs }
        guard port.page(at: path) != nil else { return [] }
        return port.waiting.values.reduce(into: []) { $0.formUnion($1.peerUIDs) }
    }

    /// By the Fetch Metadata fields, which a page cannot set. Requests without these fields pass.
    private func isTopLevelNavigation(_ fields: HTTPFields) -> Bool {
        fields[all: "Sec-Fetch-Mode"].allSatisfy { $0 == "navigate" }
            && fields[all: "Sec-Fetch-Dest"].allSatisfy { $0 == "document" }
    }

    /// Prefetching and prerendering, by the fields of old and new browsers.
    private func isPrefetch(_ fields: HTTPFields) -> Bool {
        ["Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"].contains { name in
            fields[all: name].contains { value in
                let value = value.lowercased()
                return value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
            }
        }
    }

    private func isForm(_ fields: HTTPFields) -> Bool {
        let types = fields[all: "Content-Type"]
        let type = types.first?.prefix { $0 != ";" && $0 != " " }.lowercased()
        return types.count == 1 && type == "application/x-www-form-urlencoded"
    }
}

extension ServerRequest {
    /// Of our socket that the request came to.
    fileprivate var family: Family {
        if case .network(_, _, let server, _) = peer, server.count == 16 { .ipv6 } else { .ipv4 }
    }
}

/// An address family of loopback.
enum Family: Sendable, Hashable, CaseIterable {
    case ipv4, ipv6
    var address: String { self == .ipv4 ? "127.0.0.1" : "::1" }
}

/// A redirect URI to listen at. The URI that is sent to the provider, the Host field that the browser sends, and the
/// address that is bound are derived from one text, so that they cannot differ.
public struct CallbackBinding: Sendable, Equatable {
    /// `http://HOST:`, and the text after the port.
    private let prefix: String
    private let suffix: String
    private let statesPort: Bool
    /// Lower-cased; an IPv6 address in brackets.
    private let host: String
    /// 0 for a free one.
    let port: Int
    /// `/` for an empty path (RFC 9110 section 4.2.3).
    let path: String
    private(set) var families: Set<Family>
    /// Such as an account. If several owners have the same redirect URI, each has rules of its own.
    public var owner = ""
    /// POST requests with a form are accepted (`form_post`).
    public var acceptsPost: Bool
    /// Users whose connections are accepted, besides the daemon's own (a browser in a container that maps users).
    public var peerUIDs: Set<UInt32>
    /// Of a start address.
    private(set) var entranceKey: String?

    /// `{port}` or `0` in the port's place asks for a free port. Everything else is kept byte for byte, since providers
    /// compare it that way. `localhost` means both 127.0.0.1 and ::1 (RFC 8252 section 8.3). Throws `unsuitable`.
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

    /// A free port of 127.0.0.1. Throws `unsuitable` for an invalid path.
    public init(path: String, acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []) throws(CallbackListenerError) {
        try self.init(parsing: "http://127.0.0.1:{port}\(path)", acceptsPost: acceptsPost, peerUIDs: peerUIDs)
    }

    /// A start address at 127.0.0.1 or [::1], see ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``. If the
    /// redirect URI is at the same address, the port is the same too, so that a user who forwards or publishes ports
    /// needs only one. Throws `unsuitable` if the key is not base64url.
    static func entrance(
        key: String, beside redirectURI: String, on family: Family
    ) throws(CallbackListenerError) -> CallbackBinding {
        let url = try? WebURL(parsing: redirectURI)
        let isShared = url?.scheme == "http" && (url?.host == family.address || url?.host == "localhost")
        let port = isShared ? url?.port ?? 80 : 0
        let host = family == .ipv6 ? "[\(family.address)]" : family.address
        let text = "http://\(host):\(port)\(CallbackPaths.start)\(key)"
        guard let own = try? WebURL(parsing: text) else { throw .unsuitable(reason: "the key is not base64url") }
        var binding = CallbackBinding(text, own, host: family.address, acceptsPost: false, peerUIDs: [])
        binding.entranceKey = key
        return binding
    }

    /// See ``LoopbackListener/openSite(_:owner:peerUIDs:serving:)``. Throws `unsuitable` if the name is no label of a
    /// host name.
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

    /// As it is sent to the provider.
    func redirectURI(port: Int) -> String { statesPort ? "\(prefix)\(port)\(suffix)" : prefix + suffix }

    /// The Host field of a genuine callback. Browsers leave out the default port 80.
    func authority(port: Int) -> String { port == 80 ? host : "\(host):\(port)" }

    private static func replacingPlaceholder(in text: String) -> String {
        // Only in the port's place. A path cannot contain braces.
        guard let range = text.firstRange(of: ":{port}") else { return text }
        return text[..<range.lowerBound] + ":0" + text[range.upperBound...]
    }
}

extension SocketOwner {
    /// Of the socket listening at a port; nil if there is none or the kernel does not tell.
    static func uidListening(at family: Family, port: Int) -> UInt32? {
        guard let port = UInt16(exactly: port) else { return nil }
        switch family {
        case .ipv4: return owner([127, 0, 0, 1], port, [0, 0, 0, 0], 0)
        case .ipv6:
            let any = [UInt8](repeating: 0, count: 16)
            return owner(any.dropLast() + [1], port, any, 0)
        }
    }
}
