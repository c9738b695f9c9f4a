import DeepLinks
import OAuth
import RingbackBase
import SupabaseAuth

/// URLs from outside: what may be of a sign-in is never an app's link, and no way of writing it makes it one.
enum DeepLinkLaw {
    private static let redirects = [
        "swisscoin://auth-callback", "com.example.app:/oauth/done", "https://app.example/done",
        "http://127.0.0.1:8400/callback",
    ]
    private static let rules = LinkRules(schemes: ["org.example.notes"], redirectURIs: redirects)
    private static let tokens: Set<String> = ["access_token", "refresh_token", "id_token"]

    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text) else { return }
        let kind = rules.kind(of: url)
        if url.scheme == "http" || url.scheme == "https" { try hold("a web page is no app's", kind == .callback) }
        try checkRewriting(url, kind)
        switch kind {
        case .callback: break
        case .foreign(let scheme):
            try hold("a foreign scheme is the URL's", scheme == url.scheme && !rules.schemes.contains(scheme))
        case .deepLink(let scheme):
            try hold("a link's scheme is the URL's", scheme == url.scheme && rules.schemes.contains(scheme))
            try checkInnocence(of: url)
        }
    }

    /// What the readers of callbacks make of it.
    private static func checkInnocence(of url: WebURL) throws {
        for part in [url.query, url.fragment] {
            let names = Set(((try? FormEncoding.parse(part ?? "")) ?? []).map(\.name))
            try hold("a link has no token", names.isDisjoint(with: tokens))
        }
        if let response = try? AuthorizationResponse(parsing: url), case .code = response.outcome {
            throw LawBroken(law: "a link has no code with a state")
        }
        if let callback = try? SupabaseCallback(parsing: url), case .code = callback.outcome {
            try hold("a link has no code with a key", callback.queryKey == nil)
        }
        for redirect in redirects.compactMap({ try? WebURL(parsing: $0) }) {
            let isThere =
                redirect.scheme == url.scheme && redirect.host == url.host && redirect.port == url.port
                && redirect.path == url.path
            try hold("a link is at no redirect URI", !isThere)
        }
    }

    private static func checkRewriting(_ url: WebURL, _ kind: LinkRules.Kind) throws {
        let (head, tail) = split(url)
        guard kind == .callback else {
            for name in tokens {
                for addition in ["#\(name)=x", "#a&%\(hex(name))=x", "#/\(name)=x", "#!\(name)[]=x"]
                where url.fragment == nil {
                    let spoilt = try? WebURL(parsing: url.text + addition)
                    try hold("a token spoils a link", spoilt.map { rules.kind(of: $0) == .callback } ?? true)
                }
            }
            return
        }
        // As long as it is a URL at all, nothing that is added or written in another way takes it back.
        let rewritten = [
            url.text + (url.fragment == nil ? "#a=b" : "&a=b"), head.scheme.uppercased() + head.rest + tail,
            url.path.isEmpty || url.path.hasPrefix("/") ? head.scheme + head.rest + "/" + tail : url.text,
        ]
        for text in rewritten {
            let other = try? WebURL(parsing: text)
            try hold("a callback stays one", other.map { rules.kind(of: $0) == .callback } ?? true)
        }
    }

    /// Scheme, the rest up to the query or fragment, and those.
    private static func split(_ url: WebURL) -> (head: (scheme: String, rest: String), tail: String) {
        let end = url.text.firstIndex { $0 == "?" || $0 == "#" } ?? url.text.endIndex
        let colon = url.text.firstIndex(of: ":") ?? url.text.startIndex
        return ((String(url.text[..<colon]), String(url.text[colon..<end])), String(url.text[end...]))
    }

    /// The name with its first letter as an escape, without the sign.
    private static func hex(_ name: String) -> String {
        (name.utf8.first.map { String($0, radix: 16) } ?? "") + name.dropFirst()
    }
}
