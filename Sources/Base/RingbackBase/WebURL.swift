/// An absolute URL, split into its components (RFC 3986). Only scheme and host are lower-cased; nothing is decoded.
public struct WebURL: Sendable, Equatable {
    public enum Failure: Error, Equatable, Sendable {
        case tooLong, invalidCharacter, noScheme, noHost, userInformation, invalidPort
    }

    /// In bytes.
    public static let maxLength = 16_384
    /// As given.
    public let text: String
    /// Lower-cased.
    public let scheme: String
    /// Lower-cased, an IPv6 address without its brackets. Nil if the URL has no `//` part.
    public let host: String?
    /// As written.
    public let port: Int?
    /// From the first `/`, undecoded; may be empty.
    public let path: String
    /// After `?`, undecoded.
    public let query: String?
    /// After `#`, undecoded.
    public let fragment: String?

    /// Throws ``Failure`` for spaces, control characters, non-ASCII characters, the characters `"<>\^`{|}`, user
    /// information, and everything else that is not a valid absolute URL.
    public init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= WebURL.maxLength else { throw .tooLong }
        for byte in text.utf8 {
            guard byte > 0x20, byte < 0x7F, !"\"<>\\^`{|}".utf8.contains(byte) else { throw .invalidCharacter }
        }
        guard let colon = text.firstIndex(of: ":") else { throw .noScheme }
        let scheme = text[..<colon]
        guard scheme.utf8.first?.isLetter == true,
            scheme.utf8.allSatisfy({ $0.isLetterOrDigit || "+-.".utf8.contains($0) })
        else { throw .noScheme }
        var rest = text[text.index(after: colon)...]
        var fragment: String?
        if let hash = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: hash)...])
            rest = rest[..<hash]
        }
        var query: String?
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        var host: String?
        var port: Int?
        if rest.hasPrefix("//") {
            let authority = rest.dropFirst(2)
            let end = authority.firstIndex(of: "/") ?? authority.endIndex
            (host, port) = try WebURL.parseAuthority(authority[..<end])
            rest = authority[end...]
        }
        self.text = text
        self.scheme = scheme.lowercased()
        self.host = host
        self.port = port
        self.path = String(rest)
        self.query = query
        self.fragment = fragment
        if self.scheme == "http" || self.scheme == "https" {
            guard let host, !host.isEmpty else { throw .noHost }
        }
    }

    private static func parseAuthority(_ authority: Substring) throws(Failure) -> (String, Int?) {
        guard !authority.contains("@") else { throw .userInformation }
        let host: Substring
        let tail: Substring
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]") else { throw .noHost }
            host = authority[authority.index(after: authority.startIndex)..<close]
            tail = authority[authority.index(after: close)...]
            // Brackets must contain an IPv6 address. If they contained a name, this parser and libcurl could read
            // An IPv6 address. With a name, this parser and libcurl could read different hosts.
            guard host.contains(":"), !host.contains("[") else { throw .noHost }
        } else {
            let colon = authority.firstIndex(of: ":") ?? authority.endIndex
            host = authority[..<colon]
            tail = authority[colon...]
            guard !host.contains(where: { $0 == "[" || $0 == "]" }) else { throw .noHost }
        }
        guard !tail.isEmpty else { return (host.lowercased(), nil) }
        let digits = tail.dropFirst()
        guard tail.hasPrefix(":"), !digits.isEmpty, digits.utf8.count <= 5, digits.utf8.allSatisfy(\.isDigit),
            let port = Int(digits), port <= 65_535
        else { throw .invalidPort }
        return (host.lowercased(), port)
    }

    /// `scheme://host[:port]`, without the port if it is the scheme's default (RFC 6454).
    public var origin: String {
        let name = host.map { $0.contains(":") ? "[\($0)]" : $0 } ?? ""
        let isDefault = port == nil || (scheme == "https" && port == 443) || (scheme == "http" && port == 80)
        return isDefault ? "\(scheme)://\(name)" : "\(scheme)://\(name):\(port ?? 0)"
    }

    /// The host for messages, with the port if it is not the scheme's default.
    public var place: String {
        guard let host else { return "" }
        let usual = ["https": 443, "http": 80][scheme]
        guard let port, port != usual else { return host }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// 127.0.0.0/8, ::1 and `localhost`, the only hosts to which plain `http` is allowed.
    public var isLoopback: Bool {
        guard let host else { return false }
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy(WebURL.isDecimalByte)
    }

    /// Secrets may be sent to it: https, or http on loopback.
    public var isSecure: Bool { scheme == "https" || (scheme == "http" && isLoopback) }

    /// 0 to 255 without leading zeros. Some parsers read a number with a leading zero as octal.
    private static func isDecimalByte(_ text: Substring) -> Bool {
        guard (1...3).contains(text.utf8.count), text.utf8.allSatisfy(\.isDigit), let number = Int(text) else {
            return false
        }
        return number < 256 && (number == 0 ? text.utf8.count == 1 : text.utf8.first != UInt8(ascii: "0"))
    }
}

/// A private-use URI scheme that an app may claim (RFC 3986 section 3.1, RFC 8252 section 7.1): well-formed and not
/// reserved.
public struct URLScheme: Hashable, Sendable, Comparable, CustomStringConvertible {
    public enum Failure: Error, Equatable, Sendable {
        /// Not a letter followed by letters, digits, `+`, `-` and `.`, or longer than ``URLScheme/maxLength`` bytes.
        case malformed
        /// One of ``URLScheme/reserved``.
        case reserved(String)
    }

    /// In bytes.
    public static let maxLength = 64

    /// Those of the web and of the desktop, those for which every desktop has a handler, and those that execute or
    /// display their content.
    public static let reserved: Set<String> = [
        "about", "acct", "admin", "android-app", "apt", "bitcoin", "blob", "callto", "cid", "chrome",
        "chrome-extension", "computer", "content", "data", "dav", "davs", "dict", "dns", "facetime", "feed", "file",
        "filesystem", "finger", "ftp", "ftps", "geo", "git", "google-chrome", "gopher", "help", "http", "https", "imap",
        "info", "intent", "ipp", "ipps", "irc", "ircs", "jar", "javascript", "ldap", "ldaps", "magnet", "mailto", "man",
        "mid", "mms", "moz-extension", "network", "news", "nfs", "nntp", "pop", "recent", "resource", "rsync", "rtsp",
        "sftp", "sip", "sips", "skype", "sms", "smb", "ssh", "steam", "tel", "telnet", "tftp", "trash", "unix", "urn",
        "vbscript", "view-source", "vnc", "webcal", "webcals", "ws", "wss", "x-scheme-handler", "xmpp",
    ]

    /// In lower case, because schemes are compared without regard to letter case.
    public let name: String

    /// Without its colon. Throws ``Failure``.
    public init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= URLScheme.maxLength, text.utf8.first?.isLetter == true,
            text.utf8.allSatisfy({ $0.isLetterOrDigit || "+-.".utf8.contains($0) })
        else { throw .malformed }
        let name = text.lowercased()
        guard !URLScheme.reserved.contains(name) else { throw .reserved(name) }
        self.name = name
    }

    /// A reversed domain name such as `org.example.app`, which another app has no reason to use (RFC 8252 section 7.1);
    /// any app may claim a short word (section 8.6).
    public var isReverseDNS: Bool {
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return labels.count > 1 && labels.allSatisfy { !$0.isEmpty }
    }

    public var description: String { name }
    public static func < (left: URLScheme, right: URLScheme) -> Bool { left.name < right.name }
}

extension WebURL {
    /// True if this callback URL belongs to the redirect URI `redirect`. Queries and fragments are ignored. Browsers
    /// and desktops may rewrite a URL with a custom scheme: they change the letter case of scheme and host, and add or
    /// remove a trailing slash or an empty host. These differences are ignored for custom schemes. For http and https
    /// the path must be equal, where an empty one is `/` (RFC 9110 section 4.2.3).
    public func isPlace(of redirect: WebURL) -> Bool {
        guard scheme == redirect.scheme, (host ?? "") == (redirect.host ?? ""), port == redirect.port else {
            return false
        }
        guard scheme != "http", scheme != "https" else { return path == redirect.path || (path + redirect.path) == "/" }
        return WebURL.withoutLastSlash(path) == WebURL.withoutLastSlash(redirect.path)
    }

    private static func withoutLastSlash(_ path: String) -> Substring {
        path.hasSuffix("/") ? path.dropLast() : path[...]
    }
}

/// Of the callback listener's own pages, which no redirect URI may have.
public enum CallbackPaths {
    public static let done = "/done"
    public static let failed = "/failed"
    public static let noted = "/noted"
    public static let outdated = "/older"
    /// A key follows it.
    public static let start = "/start/"

    public static func isReserved(_ path: String) -> Bool {
        [done, failed, noted, outdated].contains(path) || path.hasPrefix(start)
    }

    /// For messages.
    public static let reservedText = "\(done), \(failed), \(noted), \(outdated) and \(start)"
}
