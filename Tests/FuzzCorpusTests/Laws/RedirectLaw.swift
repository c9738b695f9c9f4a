import RingbackBase
import RingbackClient

@testable import Configuration

/// Redirect URIs of the configuration, and the two questions that the command line asks of a URL: all of them see the
/// same URL as ``WebURL`` does.
enum RedirectLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        switch Result(catching: { () throws(RedirectTarget.Failure) in try RedirectTarget(parsing: text) }) {
        case .success(let target): try check(target, text)
        case .failure(let failure):
            try hold("a mistake is one line", !failure.message.isEmpty && failure.message.isPrintableASCII)
        }
        let url = try? WebURL(parsing: text)
        if let loopback = LoopbackURL(text) { try check(loopback, url) }
        if LoopbackURL.isSafeToOpen(text), let url {
            try hold("a browser is sent to https or home", url.isSecure && url.host?.isEmpty == false)
        }
        guard let base = LoopbackURL("http://127.0.0.1:8400/a?b"), let next = base.following(text) else { return }
        let target = try WebURL(parsing: "http://\(next.authority)\(next.target)")
        try hold("no reference leads away from home", target.isLoopback && target.scheme == "http")
    }

    private static func check(_ target: RedirectTarget, _ text: String) throws {
        let again = try RedirectTarget(parsing: target.template)
        try hold("what is written is read as the same", again == target)
        let uri = try WebURL(parsing: target.uri(port: 8_400))
        try hold("an answer has no fragment", uri.fragment == nil)
        switch target {
        case .loopback(_, let port, let path):
            try hold("the listener is at home", uri.isLoopback && uri.scheme == "http" && uri.port == port ?? 8_400)
            try hold("the path is the text's end", text.hasSuffix(path) && uri.path == path && uri.query == nil)
        case .https: try hold("a page elsewhere is https", uri.scheme == "https" && uri.text == text)
        case .customScheme:
            try hold(
                "an application's scheme is no other", !["http", "https", "javascript", "file"].contains(uri.scheme))
            try hold("it is sent as it is", uri.text == text)
        }
    }

    private static func check(_ loopback: LoopbackURL, _ url: WebURL?) throws {
        guard let url else { throw LawBroken(law: "what is at home is a URL") }
        try hold("what is at home is at home", url.isLoopback && url.scheme == "http")
        try hold("the port is the URL's", Int(loopback.port) == url.port ?? 80)
        let target = url.path + (url.query.map { "?" + $0 } ?? "")
        try hold("the target is the URL's", loopback.target == (target.hasPrefix("/") ? target : "/" + target))
    }
}
