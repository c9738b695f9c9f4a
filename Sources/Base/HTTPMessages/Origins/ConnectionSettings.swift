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
        guard text.utf8.count == 64, text.utf8.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
            return nil
        }
        return text.lowercased()
    }

    /// A host name or an address in lower-case letters; nil for any other text.
    public static func serverName(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._:".utf8.contains(byte)
            }
        }
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
