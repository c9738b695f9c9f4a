/// An HTTP proxy that opens tunnels to providers (CONNECT, RFC 9110 section 9.3.6).
public struct HTTPProxy: Sendable, Equatable {
    /// `http://HOST:PORT`
    public let url: WebURL
    /// For Basic authentication (RFC 7617).
    public let credentials: Credentials?
    /// Reached without the proxy: lower-case domain names, which also match their subdomains; IP addresses without
    /// brackets, which match only themselves; `*` for every host.
    public let exceptions: [String]

    public struct Credentials: Sendable, Equatable {
        public let user: String
        public let password: Secret

        public init(user: String, password: Secret) {
            self.user = user
            self.password = password
        }
    }

    public init(url: WebURL, credentials: Credentials? = nil, exceptions: [String] = []) {
        self.url = url
        self.credentials = credentials
        self.exceptions = exceptions
    }

    /// False for loopback addresses.
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

public enum HTTPRoute: Sendable, Equatable {
    /// The proxy that the client is configured with, if any.
    case standard
    case direct
    /// If it covers the URL, see ``HTTPProxy/covers(_:)``.
    case proxy(HTTPProxy)
}

/// Settings of a tool's connection that can let somebody else than the server of the URL read the token, or those that
/// an origin allows.
public struct ConnectionSettings: Sendable, Hashable {
    /// The tool names a host without a scheme: it may connect without TLS.
    public var withoutScheme = false
    /// In place of the system's certificate authorities: the SHA-256 of the PEM text, as ``digest(_:)`` writes it.
    public var authorities: Set<String> = []
    /// Names that the certificate may have in place of the host, as ``serverName(_:)`` writes them.
    public var serverNames: Set<String> = []
    /// The certificate is not checked.
    public var skipsVerification = false
    /// Proxies, as ``proxy(_:)`` writes them.
    public var proxies: Set<String> = []

    public init() {}

    /// The lines that the origin's `[[origin]]` table lacks for a tool with these settings.
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

    /// SHA-256 in hexadecimal digits; nil for any other text.
    public static func digest(_ text: String) -> String? {
        guard text.utf8.count == 64, text.utf8.allSatisfy({ $0.hexValue != nil }) else { return nil }
        return text.lowercased()
    }

    /// A host name or an address; nil for any other text.
    public static func serverName(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy { $0.isLetterOrDigit || "-._:".utf8.contains($0) }
        return isName && (1...253).contains(text.utf8.count) ? text.lowercased() : nil
    }

    /// Without user name and password; nil for any other text.
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
