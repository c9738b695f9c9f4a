internal import BrokerCore
internal import HTTPMessages
internal import StrictJSON
internal import Synchronization

/// Links that `ringback doctor` makes the desktop open, to see whether they come back. Each has a name that cannot be
/// guessed, and is accepted once. It is neither a callback nor a link for an app.
final class DiagnosticLinks: Sendable {
    /// A link that was sent out.
    struct Link: Sendable {
        let id: String
        let scheme: URLScheme
        let arrival: Promise<Arrival>
        let endsAt: BootInstant

        var url: String { "\(scheme)://\(DiagnosticLinks.host)/\(id)" }
    }

    /// The program that brought a link back.
    struct Arrival: Sendable {
        let executable: String?
    }

    /// What a URL is.
    enum Outcome {
        case arrived(Link)
        /// It has the form of a test link, but none of this name is awaited.
        case unknown
        /// It is something else.
        case other
    }

    static let host = "ringback-doctor"
    /// The lifetime of a link, and how many may be out at a time. A round trip takes a second.
    private static let lifetime: Duration = .seconds(120)
    private static let maxCount = 64

    private let links = Mutex<[String: Link]>([:])
    private let clock: BrokerClock

    init(clock: BrokerClock) { self.clock = clock }

    /// A new link; nil if too many are out.
    func make(_ scheme: URLScheme) -> Link? {
        let now = clock.bootInstant
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
        let now = clock.bootInstant
        return links.withLock { $0[id] }.flatMap { $0.endsAt > now ? $0 : nil }
    }

    /// Takes a URL that came from outside.
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

    /// 128 bits, in lower-case letters and digits, which no program on the way changes.
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
