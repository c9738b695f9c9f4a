/// A scheme that an app may have for its own (RFC 3986 section 3.1, RFC 8252 section 7.1): well-formed, and none of those
/// that browsers and desktops keep for themselves or that run what they carry.
public struct URLScheme: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Why a text is no such scheme.
    public enum Failure: Error, Equatable, Sendable {
        /// Not a letter and then letters, digits, `+`, `-` and `.`, at most ``URLScheme/maxLength`` bytes.
        case malformed
        /// One of ``URLScheme/reserved``.
        case reserved(String)
    }

    /// Bytes: names after domains are shorter.
    public static let maxLength = 64

    /// Not for apps: the web's and the desktop's own, those with handlers that everybody has, and those that run or
    /// show what they carry.
    public static let reserved: Set<String> = [
        "about", "acct", "admin", "android-app", "apt", "bitcoin", "blob", "callto", "cid", "chrome",
        "chrome-extension", "computer", "content", "data", "dav", "davs", "dict", "dns", "facetime", "feed", "file",
        "filesystem", "finger", "ftp", "ftps", "geo", "git", "google-chrome", "gopher", "help", "http", "https", "imap",
        "info", "intent", "ipp", "ipps", "irc", "ircs", "jar", "javascript",
        "ldap", "ldaps", "magnet", "mailto", "man", "mid", "mms", "moz-extension", "network", "news", "nfs", "nntp",
        "pop", "recent",
        "resource", "rsync", "rtsp", "sftp", "sip", "sips", "skype", "sms", "smb", "ssh", "steam", "tel", "telnet",
        "tftp", "trash",
        "unix", "urn", "vbscript", "view-source", "vnc", "webcal", "webcals", "ws", "wss", "x-scheme-handler", "xmpp",
    ]

    /// In lower case, as schemes are compared.
    public let name: String

    /// Reads a scheme without its colon.
    public init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= URLScheme.maxLength, let first = text.utf8.first, URLScheme.isLetter(first),
            text.utf8.allSatisfy({ URLScheme.isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0) })
        else { throw .malformed }
        let name = text.lowercased()
        guard !URLScheme.reserved.contains(name) else { throw .reserved(name) }
        self.name = name
    }

    /// True for a scheme after a domain name of the app's maker, as `org.example.app`: nobody else has a reason to use
    /// it. Any app may claim a short word (RFC 8252 sections 7.1 and 8.6).
    public var isReverseDNS: Bool {
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return labels.count > 1 && labels.allSatisfy { !$0.isEmpty }
    }

    public var description: String { name }
    public static func < (left: URLScheme, right: URLScheme) -> Bool { left.name < right.name }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
}

extension WebURL {
    /// True if a callback at this address is one of `redirect`, whatever their queries and fragments.
    ///
    /// Browsers and desktops write an app's address in another way than it was registered: they change the letter case
    /// of scheme and host, and add or drop a slash at the end or an empty host. An address of the web means exactly
    /// what it says.
    public func isPlace(of redirect: WebURL) -> Bool {
        guard scheme == redirect.scheme, (host ?? "") == (redirect.host ?? ""), port == redirect.port else {
            return false
        }
        guard scheme != "http", scheme != "https" else { return path == redirect.path }
        return WebURL.withoutLastSlash(path) == WebURL.withoutLastSlash(redirect.path)
    }

    private static func withoutLastSlash(_ path: String) -> Substring {
        path.hasSuffix("/") ? path.dropLast() : path[...]
    }
}
