/// The address to which a tool is about to connect, to be compared with ``OriginPattern``.
public struct OriginPlace: Sendable, Equatable {
    /// Lower-cased.
    public let scheme: String
    /// Lower-cased, an IPv6 address without its brackets; nil if the URL has none.
    public let host: String?
    /// Nil for the default port of the scheme.
    public let port: Int?
    /// Of the path, with escapes in canonical form. Nil if servers may interpret the path in different ways.
    public let segments: [String]?
    /// Secrets may be sent to this address: the protocol is encrypted, or the host is this machine.
    public let isSecure: Bool
    let hasQueryOrFragment: Bool

    public init(_ url: WebURL) {
        scheme = url.scheme
        host = url.host.flatMap { $0.isEmpty ? nil : $0 }
        port = url.port == OriginPlace.usualPorts[url.scheme] ? nil : url.port
        segments = OriginPlace.segments(of: url.path)
        isSecure = url.isLoopback || OriginPlace.encryptedSchemes.contains(url.scheme)
        hasQueryOrFragment = url.query != nil || url.fragment != nil
    }

    /// For the schemes that tools use (IANA's registry of service names).
    private static let usualPorts = [
        "https": 443, "http": 80, "wss": 443, "ws": 80, "smtp": 25, "smtps": 465, "imap": 143, "imaps": 993,
        "pop3": 110, "pop3s": 995,
    ]
    /// The unencrypted schemes of mail protocols are included: their clients switch to TLS (STARTTLS).
    private static let encryptedSchemes: Set<String> = [
        "https", "wss", "smtp", "smtps", "imap", "imaps", "pop3", "pop3s", "sieve", "ldaps", "ftps", "mqtts", "amqps",
        "nntps", "ssh", "sftp",
    ]

    /// Of an undecoded path; nil if they are ambiguous.
    static func segments(of path: String) -> [String]? {
        guard !path.isEmpty else { return [] }
        guard path.hasPrefix("/") else { return nil }
        var segments: [String] = []
        for part in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let segment = normalized(part.utf8), !isDots(segment) else { return nil }
            segments.append(segment)
        }
        return segments
    }

    /// Nil for an invalid escape, for `\`, and for escapes of `/`, `\`, `%` and control characters: some servers decode
    /// these before they split the path, or decode twice.
    private static func normalized(_ bytes: Substring.UTF8View) -> String? {
        var output: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte != UInt8(ascii: "\\") else { return nil }
            guard byte == UInt8(ascii: "%") else {
                output.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { return nil }
            let decoded = high << 4 | low
            switch decoded {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"), UInt8(ascii: "%"), 0..<0x20, 0x7F: return nil
            case _ where decoded.isUnreserved: output.append(decoded)
            default: output += decoded.percentEscape
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// True for `.` and `..`, also with a semicolon or a space after it, escaped or not: some servers remove that and
    /// the text after it before they resolve `.` and `..`.
    private static func isDots(_ segment: String) -> Bool {
        let rest = segment.drop { $0 == "." }
        let dots = segment.count - rest.count
        return (1...2).contains(dots) && (rest.isEmpty || [";", "%3B", " ", "%20"].contains { rest.hasPrefix($0) })
    }
}
