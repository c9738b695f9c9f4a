internal import BrokerCore
internal import HTTPMessages
internal import StrictJSON
internal import Synchronization

/// Links that `ringback doctor` lets the desktop open, to see whether they come back: each has a name that cannot be
/// guessed, arrives once, and means nothing else. What arrives is neither a callback nor a link for an app.
final class DiagnosticLinks: Sendable {
    /// A link that was sent out.
    struct Link: Sendable {
        let id: String
        let scheme: URLScheme
        let arrival: Promise<Arrival>
        let endsAt: Int

        var url: String { "\(scheme)://\(DiagnosticLinks.host)/\(id)" }
    }

    /// Who brought a link back.
    struct Arrival: Sendable {
        let executable: String?
    }

    /// What became of a URL.
    enum Outcome {
        case arrived(Link)
        /// It looks like one, but nobody waits for it.
        case unknown
        /// It is something else.
        case other
    }

    static let host = "ringback-doctor"
    /// A round trip takes a second; more than this many at a time are nobody's (seconds).
    private static let lifetime = 120
    private static let maxCount = 64

    private let links = Mutex<[String: Link]>([:])
    /// Seconds since boot.
    private let uptime: @Sendable () -> Int

    init(uptime: @escaping @Sendable () -> Int) { self.uptime = uptime }

    /// A new link; nil if too many are out.
    func make(_ scheme: URLScheme) -> Link? {
        let now = uptime()
        let link = Link(
            id: DiagnosticLinks.randomName(), scheme: scheme, arrival: Promise(), endsAt: now + DiagnosticLinks.lifetime
        )
        return links.withLock { links in
            links = links.filter { $0.value.endsAt > now }
            guard links.count < DiagnosticLinks.maxCount else { return nil }
            links[link.id] = link
            return link
        }
    }

    subscript(id: String) -> Link? {
        let now = uptime()
        return links.withLock { $0[id] }.flatMap { $0.endsAt > now ? $0 : nil }
    }

    /// Takes what came from outside.
    func receive(_ text: String, from executable: @autoclosure () -> String?) -> Outcome {
        guard let url = try? WebURL(parsing: text), url.scheme != "http", url.scheme != "https",
            url.host == DiagnosticLinks.host
        else { return .other }
        let id = url.path.split(separator: "/").first.map(String.init) ?? ""
        guard let link = self[id], let own = try? WebURL(parsing: link.url), url.isPlace(of: own) else {
            return .unknown
        }
        link.arrival.fulfil(Arrival(executable: executable()))
        return .arrived(link)
    }

    /// 128 bits; small letters and digits, which nothing on the way changes.
    private static func randomName() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let text = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }
}

extension DiagnosticLinks.Link {
    /// The link as the API shows it.
    var json: JSON {
        var object = JSONObject([
            .init("id", .string(id)), .init("scheme", .string(scheme.name)), .init("url", .string(url)),
            .init("arrived", .bool(arrival.value != nil)),
        ])
        object["executable"] = (arrival.value?.executable).map { .string($0) }
        return .object(object)
    }
}

extension Component {
    static let diagnosticLink = Component(
        "DiagnosticLink",
        [
            .required("id", .string), .required("scheme", .string), .required("url", .string),
            .required("arrived", .boolean), .optional("executable", .string),
        ])
}
