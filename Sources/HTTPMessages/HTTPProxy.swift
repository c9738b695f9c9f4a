public import Secrets

/// An HTTP proxy that opens tunnels to providers (CONNECT, RFC 9110 section 9.3.6).
public struct HTTPProxy: Sendable, Equatable {
    /// `http://HOST:PORT`
    public let url: WebURL
    /// What the proxy is told of who asks (RFC 7617); nil for nothing.
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

    /// - Parameter exceptions: names in small letters, which stand for the hosts below them too; addresses without
    ///   brackets, which stand for themselves; `*` for every host.
    public init(url: WebURL, credentials: Credentials? = nil, exceptions: [String] = []) {
        self.url = url
        self.credentials = credentials
        self.exceptions = exceptions
    }

    /// True if a request to the URL goes through the proxy. Requests to this machine never do.
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

/// How a request reaches its server.
public enum HTTPRoute: Sendable, Equatable {
    /// As the client is configured for all requests.
    case standard
    /// Without a proxy.
    case direct
    /// Through this proxy, as far as it covers the URL.
    case proxy(HTTPProxy)
}
