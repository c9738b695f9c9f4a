public import RingbackBase

/// A server of the web, and the address on loopback whose requests a relay carries to it.
public struct RelayedOrigin: Sendable {
    /// Requests go to this URL, and to what is below its path.
    public let url: WebURL
    /// The relay's, on 127.0.0.1.
    public let port: Int
    private let segments: ArraySlice<String>

    /// Nil for a URL to which no secret may be sent, with a query or a fragment, or with a path that servers may read in
    /// different ways.
    public init?(_ url: WebURL, port: Int) {
        guard ["https", "http"].contains(url.scheme), url.isSecure, url.query == nil, url.fragment == nil,
            let segments = OriginPlace(url).segments
        else { return nil }
        self.url = url
        self.port = port
        self.segments = segments.last == "" ? segments.dropLast() : segments[...]
    }

    public var authority: String { "127.0.0.1:\(port)" }
    var address: String { "http://\(authority)" }

    /// The URL at the server of a target in origin form; nil for one that is not below ``url``.
    func url(of target: String) -> WebURL? {
        guard let found = try? WebURL(parsing: url.origin + target), found.fragment == nil,
            OriginPlace(found).segments?.starts(with: segments) == true
        else { return nil }
        return found
    }

    /// A reference in a response (RFC 3986 section 4.1), with the relay's address in place of the server's.
    func reference(_ text: String) -> String {
        let text = text.hasPrefix("//") ? "\(url.scheme):\(text)" : text
        guard let found = try? WebURL(parsing: text), found.origin == url.origin else { return text }
        let (query, fragment) = (found.query.map { "?\($0)" }, found.fragment.map { "#\($0)" })
        return address + found.path + (query ?? "") + (fragment ?? "")
    }

    /// The value of a `Link` field (RFC 8288 section 3), each of whose references is treated so.
    func links(_ text: String) -> String {
        var (written, isQuoted) = ("", false)
        var rest = text[...]
        while let letter = rest.popFirst() {
            written.append(letter)
            if letter == "\\", isQuoted, let escaped = rest.popFirst() {
                written.append(escaped)
            } else if letter == "\"" {
                isQuoted.toggle()
            } else if letter == "<", !isQuoted, let end = rest.firstIndex(of: ">") {
                written += reference(String(rest[..<end]))
                rest = rest[end...]
            }
        }
        return written
    }
}
