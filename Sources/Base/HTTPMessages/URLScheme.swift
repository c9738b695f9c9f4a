/// A private-use URI scheme that an app may claim (RFC 3986 section 3.1, RFC 8252 section 7.1). It is well-formed and
/// not reserved: browsers and desktops handle the reserved schemes themselves, or the scheme executes its content.
public struct URLScheme: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Why a scheme is rejected.
    public enum Failure: Error, Equatable, Sendable {
        /// Not a letter followed by letters, digits, `+`, `-` and `.`, or longer than ``URLScheme/maxLength`` bytes.
        case malformed
        /// One of ``URLScheme/reserved``.
        case reserved(String)
    }

    /// The maximum length in bytes.
    public static let maxLength = 64

    /// Schemes that apps may not claim: those of the web and of the desktop, those for which every desktop has a
    /// handler, and those that execute or display their content.
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

    /// The scheme in lower case, because schemes are compared without regard to letter case.
    public let name: String

    /// Reads a scheme without its colon. Throws ``Failure`` if it is malformed or reserved.
    public init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= URLScheme.maxLength, let first = text.utf8.first, URLScheme.isLetter(first),
            text.utf8.allSatisfy({ URLScheme.isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0) })
        else { throw .malformed }
        let name = text.lowercased()
        guard !URLScheme.reserved.contains(name) else { throw .reserved(name) }
        self.name = name
    }

    /// True if the scheme is a reversed domain name such as `org.example.app`. RFC 8252 section 7.1 asks for this form,
    /// because another app has no reason to use the same one; any app may claim a short word (section 8.6).
    public var isReverseDNS: Bool {
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return labels.count > 1 && labels.allSatisfy { !$0.isEmpty }
    }

    public var description: String { name }
    public static func < (left: URLScheme, right: URLScheme) -> Bool { left.name < right.name }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
}

extension WebURL {
    /// True if this callback URL belongs to the redirect URI `redirect`. Queries and fragments are ignored.
    ///
    /// Browsers and desktops may rewrite a URL with a custom scheme: they change the letter case of scheme and host,
    /// and add or remove a trailing slash or an empty host. These differences are ignored for custom schemes. For http
    /// and https the path must be equal, where an empty one is `/` (RFC 9110 section 4.2.3).
    public func isPlace(of redirect: WebURL) -> Bool {
        guard scheme == redirect.scheme, (host ?? "") == (redirect.host ?? ""), port == redirect.port else {
            return false
        }
        guard scheme != "http", scheme != "https" else {
            return path == redirect.path || (path + redirect.path) == "/"
        }
        return WebURL.withoutLastSlash(path) == WebURL.withoutLastSlash(redirect.path)
    }

    private static func withoutLastSlash(_ path: String) -> Substring {
        path.hasSuffix("/") ? path.dropLast() : path[...]
    }
}
