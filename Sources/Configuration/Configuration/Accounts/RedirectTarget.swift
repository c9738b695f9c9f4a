internal import HTTPMessages

/// Where the provider sends the authorization response (RFC 8252 section 7).
public enum RedirectTarget: Sendable, Equatable {
    /// Our own listener. `host` is as in the URI (`127.0.0.1`, `[::1]`, `localhost`), `port` is nil for a free port,
    /// `path` is as in the URI and may be empty.
    case loopback(host: String, port: Int?, path: String)
    /// A custom scheme: the desktop starts `ringback open`.
    case customScheme(uri: String)
    /// A web page: the user pastes its URL into `ringback complete`.
    case https(uri: String)

    /// The redirect URI as it is sent, byte for byte; `port` is that of the flow's listener.
    public func uri(port: Int) -> String {
        switch self {
        case .loopback(let host, let fixed, let path): "http://\(host):\(fixed ?? port)\(path)"
        case .customScheme(let uri), .https(let uri): uri
        }
    }

    /// The redirect URI for display, with `{port}` for a free port.
    public var template: String {
        switch self {
        case .loopback(let host, nil, let path): "http://\(host):{port}\(path)"
        case .loopback(let host, let port?, let path): "http://\(host):\(port)\(path)"
        case .customScheme(let uri), .https(let uri): uri
        }
    }

    /// The default: `http://127.0.0.1:{port}/callback/ACCOUNT`.
    static func standard(account: String) -> RedirectTarget {
        .loopback(host: "127.0.0.1", port: nil, path: "/callback/\(account)")
    }

    /// Why a redirect URI is rejected, and what is allowed.
    struct Failure: Error, Equatable {
        let message: String

        init(_ message: String) {
            self.message = message
        }
    }

    /// Schemes that browsers and desktops reserve, or that execute their content.
    static let reservedSchemes = URLScheme.reserved
    private static let allowed =
        "allowed are http://127.0.0.1:{port}/PATH (also [::1] and localhost, also with a fixed port), a custom scheme, "
        + "and https"

    /// Reads a `redirect_uri` of the configuration. Throws ``Failure``.
    init(parsing text: String) throws(Failure) {
        // `{port}` is not valid in a URL, so it is replaced by 0 for parsing.
        let standIn = text.split(separator: ":{port}", maxSplits: 1, omittingEmptySubsequences: false)
        let isFree = standIn.count == 2
        // `{port}` must be followed by the path or the end: `{port}0` is an error.
        let isWhole = !isFree || standIn[1].isEmpty || "/?#".contains(standIn[1].first ?? "/")
        guard isWhole, let url = try? WebURL(parsing: isFree ? "\(standIn[0]):0\(standIn[1])" : text) else {
            throw Failure("is not a URI; \(RedirectTarget.allowed)")
        }
        guard url.fragment == nil else { throw Failure("must not have a fragment (#)") }
        guard url.scheme == "http" else {
            guard !isFree else { throw Failure("{port} belongs to http://127.0.0.1, [::1] and localhost only") }
            guard url.scheme != "https" else {
                self = .https(uri: text)
                return
            }
            guard !RedirectTarget.reservedSchemes.contains(url.scheme) else {
                throw Failure("the scheme \(url.scheme) is not for applications; \(RedirectTarget.allowed)")
            }
            self = .customScheme(uri: text)
            return
        }
        guard let host = url.host, ["127.0.0.1", "::1", "localhost"].contains(host) else {
            throw Failure("plain http is for 127.0.0.1, [::1] and localhost only; \(RedirectTarget.allowed)")
        }
        guard let port = url.port else { throw Failure("needs a port: write :{port} for a free one") }
        try RedirectTarget.check(url)
        // A `{port}` in the path would have been replaced by 0.
        guard !isFree || standIn[1] == url.path else { throw Failure("{port} is allowed only after the host") }
        self = .loopback(host: host == "::1" ? "[::1]" : host, port: port == 0 ? nil : port, path: url.path)
    }

    /// Our listener compares the path byte for byte, but browsers normalize dot segments.
    private static func check(_ url: WebURL) throws(Failure) {
        guard url.query == nil else {
            throw Failure("must not have a query (?), because the response is sent there")
        }
        let segments = url.path.split(separator: "/", omittingEmptySubsequences: false).map { $0.lowercased() }
        guard !segments.contains(where: { [".", "..", "%2e", "%2e%2e", ".%2e", "%2e."].contains($0) }) else {
            throw Failure("must not have . or .. in its path: browsers change such paths")
        }
        guard !CallbackPaths.isReserved(url.path) else {
            throw Failure("the paths \(CallbackPaths.reservedText) are the listener's own")
        }
    }
}
