public import Secrets

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
        text.contains(":") || text.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
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
