/// An HTTP proxy that opens tunnels to providers (CONNECT, RFC 9110 section 9.3.6).
public struct HTTPProxy: Sendable, Equatable {
    /// `http://HOST:PORT`
    public let url: WebURL
    /// User name and password sent to the proxy with Basic authentication (RFC 7617); nil to send none.
    public let credentials: Credentials?
    /// Hosts that are reached without the proxy, see ``init(url:credentials:exceptions:)``.
    public let exceptions: [String]

    /// A user's name and password at the proxy.
    public struct Credentials: Sendable, Equatable {
        public let user: String
        public let password: Secret

        public init(user: String, password: Secret) {
            self.user = user
            self.password = password
        }
    }

    /// - Parameter exceptions: lower-case domain names, which also match their subdomains; IP addresses without
    ///   brackets, which match only themselves; `*` for every host.
    public init(url: WebURL, credentials: Credentials? = nil, exceptions: [String] = []) {
        self.url = url
        self.credentials = credentials
        self.exceptions = exceptions
    }

    /// True if a request to the URL goes through the proxy. Requests to loopback addresses never do.
    public func covers(_ url: WebURL) -> Bool {
        guard !url.isLoopback, let host = url.host else { return false }
        return !exceptions.contains { exception in
            let name = exception.hasPrefix(".") ? String(exception.dropFirst()) : exception
            return name == "*" || host == name || (!HTTPProxy.isAddress(name) && host.hasSuffix("." + name))
        }
    }

    private static func isAddress(_ text: String) -> Bool {
        text.contains(":") || text.utf8.allSatisfy { $0 == 0x2E || $0.isDigit }
    }
}

/// Whether a request uses a proxy.
public enum HTTPRoute: Sendable, Equatable {
    /// Use the proxy that the client is configured with, if any.
    case standard
    /// Connect without a proxy.
    case direct
    /// Use this proxy if it covers the URL, see ``HTTPProxy/covers(_:)``.
    case proxy(HTTPProxy)
}

/// Settings of a connection that can let somebody else than the server of the URL read the token: those that a tool uses, or
/// those that an origin allows. Nothing is allowed by default.
public struct ConnectionSettings: Sendable, Hashable {
    /// The tool names a host without a scheme: it may connect without TLS.
    public var withoutScheme = false
    /// Certificate authorities in place of the system's: the SHA-256 of the PEM text, as ``digest(_:)`` writes it.
    public var authorities: Set<String> = []
    /// Names that the certificate may have in place of the URL's host, as ``serverName(_:)`` writes them.
    public var serverNames: Set<String> = []
    /// The certificate is not checked.
    public var skipsVerification = false
    /// Proxies, as ``proxy(_:)`` writes them.
    public var proxies: Set<String> = []

    public init() {}

    /// What is missing in the origin's `[[origin]]` table for a tool with these settings, as lines of that table; empty if
    /// the origin allows all of them.
    ///
    /// - Parameter allowed: the origin's.
    public func excess(over allowed: ConnectionSettings) -> [String] {
        func lines(_ key: String, _ values: KeyPath<ConnectionSettings, Set<String>>) -> [String] {
            self[keyPath: values].subtracting(allowed[keyPath: values]).sorted().map { "\(key) = \"\($0)\"" }
        }
        var excess: [String] = []
        if withoutScheme, !allowed.withoutScheme { excess.append("without_scheme = true") }
        excess += lines("ca_sha256", \.authorities) + lines("tls_server_name", \.serverNames)
        if skipsVerification, !allowed.skipsVerification { excess.append("insecure_skip_tls_verify = true") }
        return excess + lines("proxy_url", \.proxies)
    }

    /// A SHA-256 in lower-case hexadecimal digits; nil for any other text.
    public static func digest(_ text: String) -> String? {
        guard text.utf8.count == 64, text.utf8.allSatisfy({ $0.hexValue != nil }) else {
            return nil
        }
        return text.lowercased()
    }

    /// A host name or an address in lower-case letters; nil for any other text.
    public static func serverName(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy { $0.isLetterOrDigit || "-._:".utf8.contains($0) }
        return isName && (1...253).contains(text.utf8.count) ? text.lowercased() : nil
    }

    /// The scheme, host and port of a proxy's URL, without its user name and password; nil for any other text.
    public static func proxy(_ text: String) -> String? {
        var text = text
        if let start = text.firstRange(of: "://")?.upperBound {
            let authority = text[start...].prefix { !"/?#".contains($0) }
            if let at = authority.lastIndex(of: "@") { text.removeSubrange(start...at) }
        }
        guard let url = try? WebURL(parsing: text), url.host?.isEmpty == false else { return nil }
        return url.origin
    }
}
