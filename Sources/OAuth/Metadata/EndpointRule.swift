import HTTPMessages

/// Where secrets may be sent: https (or http on loopback), nobody's name in the URL, no fragment. And a provider out
/// there may not name an address of ours, or its metadata could make us knock at doors inside (MD-05).
enum EndpointRule {
    /// The URL, if secrets may be sent to it (RFC 6749 sections 3.1 and 3.2 forbid fragments).
    static func url(_ text: String) -> WebURL? {
        guard let url = try? WebURL(parsing: text), url.isSecure, url.fragment == nil else { return nil }
        return url
    }

    /// True if the issuer may name the endpoint. Hosts with names are resolved by the transport; an address, in any
    /// notation, is only for an issuer at the same one, and loopback only for an issuer on loopback.
    static func allows(_ endpoint: WebURL, of issuer: WebURL) -> Bool {
        guard let host = endpoint.host, isLocalOrAddress(host) else { return true }
        return host == issuer.host || (endpoint.isLoopback && issuer.isLoopback)
    }

    private static let hostsFile: Set<String> = ["ip6-localhost", "ip6-loopback", "localhost4", "localhost6"]

    /// `localhost` and what is below it or means the same in a hosts file, IPv6 literals, escaped hosts, and every host whose last label begins like a
    /// number: resolvers read 127.1, 0x7f000001 and 017700000001 as addresses.
    private static func isLocalOrAddress(_ host: String) -> Bool {
        let labels = host.utf8.split(separator: UInt8(ascii: "."))
        guard let last = labels.last, let first = last.first else { return true }
        return host.utf8.contains { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "%") }
            || (labels.count == 1 && hostsFile.contains(String(host.prefix { $0 != "." })))
            || ["localhost", "localdomain"].contains { last.elementsEqual($0.utf8) }
            || (first >= 0x30 && first <= 0x39)
    }
}
