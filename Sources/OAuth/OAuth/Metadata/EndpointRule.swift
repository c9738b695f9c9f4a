import HTTPMessages

/// The rule for URLs that secrets are sent to: https (or http on loopback), no user information, no fragment. Attack:
/// metadata of an external provider could name a loopback or internal address and make us send requests there, so
/// addresses must be the issuer's own.
enum EndpointRule {
    /// The URL, if it is allowed as an endpoint (RFC 6749 sections 3.1 and 3.2 forbid fragments).
    static func url(_ text: String) -> WebURL? {
        guard let url = try? WebURL(parsing: text), url.isSecure, url.fragment == nil else { return nil }
        return url
    }

    /// True if metadata of the issuer may name the endpoint. Host names are allowed. An IP address, in any notation, is
    /// allowed only if it is the issuer's host, and loopback only if the issuer is on loopback.
    static func allows(_ endpoint: WebURL, of issuer: WebURL) -> Bool {
        guard let host = endpoint.host, isLocalOrAddress(host) else { return true }
        return host == issuer.host || (endpoint.isLoopback && issuer.isLoopback)
    }

    private static let hostsFile: Set<String> = ["ip6-localhost", "ip6-loopback", "localhost4", "localhost6"]

    /// True for `localhost` and names below it, their aliases in a hosts file, IPv6 literals, escaped hosts, and hosts
    /// whose last label begins with a digit: resolvers read 127.1, 0x7f000001 and 017700000001 as addresses.
    private static func isLocalOrAddress(_ host: String) -> Bool {
        let labels = host.utf8.split(separator: UInt8(ascii: "."))
        guard let last = labels.last, let first = last.first else { return true }
        return host.utf8.contains { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "%") }
            || (labels.count == 1 && hostsFile.contains(String(host.prefix { $0 != "." })))
            || ["localhost", "localdomain"].contains { last.elementsEqual($0.utf8) }
            || (first >= 0x30 && first <= 0x39)
    }
}
