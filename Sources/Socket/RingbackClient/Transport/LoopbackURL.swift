/// A plain-http URL on loopback, and whether a browser may be sent to a URL. No more of RFC 3986 than that is
/// implemented here, since the daemon decides everything else about URLs.
package struct LoopbackURL: Sendable, Equatable {
    package let host: String
    package let port: UInt16
    /// Path and query; at least `/`.
    package let target: String

    package var isIPv6: Bool { host == "[::1]" }
    /// For `Host`, and for relative locations.
    package var authority: String { "\(host):\(port)" }

    /// Takes `http://HOST[:PORT]/…` apart; nil unless HOST is loopback's own (127.0.0.1, [::1], localhost).
    package init?(_ url: String) {
        let prefix = "http://"
        guard LoopbackURL.isClean(url), url.hasPrefix(prefix) else { return nil }
        let rest = url.dropFirst(prefix.count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let host = ["127.0.0.1", "[::1]", "localhost"].first {
            authority == $0 || authority.hasPrefix($0 + ":")
        }
        guard let host else { return nil }
        let digits = authority.dropFirst(host.count).dropFirst()
        // At most five digits: not every reader accepts leading zeros.
        guard authority == host || (digits.utf8.count <= 5 && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }),
            let port = authority == host ? 80 : UInt16(digits), port > 0
        else { return nil }
        let target = rest.dropFirst(authority.count)
        self.host = host
        self.port = port
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
    }

    /// Where a `Location` or a form's action leads from here; nil if it leaves loopback.
    package func following(_ reference: String) -> LoopbackURL? {
        if reference.hasPrefix("/"), !reference.hasPrefix("//") {
            return LoopbackURL("http://\(authority)\(reference)")
        }
        if reference.isEmpty { return self }
        if reference.hasPrefix("?") {
            return LoopbackURL("http://\(authority)\(target.prefix { $0 != "?" })\(reference)")
        }
        return LoopbackURL(reference)
    }

    /// True for https with a host and without user information, and for http on loopback.
    package static func isSafeToOpen(_ url: String) -> Bool {
        guard isClean(url) else { return false }
        let prefix = "https://"
        guard url.hasPrefix(prefix) else { return LoopbackURL(url) != nil }
        let authority = url.dropFirst(prefix.count).prefix { !"/?#".contains($0) }
        return !authority.isEmpty && !authority.contains("@")
    }

    /// Visible ASCII without the characters that browsers and programs read in different ways.
    private static func isClean(_ url: String) -> Bool {
        url.utf8.count <= 16_384
            && url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}".utf8.contains($0) }
    }
}
