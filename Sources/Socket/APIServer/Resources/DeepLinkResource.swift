internal import BrokerCore
internal import DeepLinks
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import Secrets
internal import StrictJSON
internal import Synchronization

struct DeepLinkResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .streamDeepLinks, "The links of a scheme for the app that listens, as server-sent events",
            query: [.required("scheme", .string, "The scheme, without its colon")], .events(.schemeEvent),
            errors: [.notFound, .validationFailed], DeepLinkResource.streamDeepLinks),
        Route(
            .acknowledgeDeepLink, "Acknowledge a link", .json(.acknowledgement), errors: [.notFound],
            DeepLinkResource.acknowledgeDeepLink),
    ]

    /// The links of a scheme for the app that listens, as server-sent events (WHATWG HTML section 9.2). Last-Event-ID
    /// is ignored: a link is sent again until it is acknowledged.
    func streamDeepLinks(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let scheme = call.query("scheme") else { throw call.invalid("scheme", "it is required") }
        var peer: PolicyPeer?
        if case .local(let uid, let pid) = call.request.peer { peer = PolicyPeer(uid: uid, pid: pid) }
        guard let listener = await api.deepLinks?.listen(to: scheme, peer: peer) else {
            throw Problem(
                .notFound,
                "No such scheme is configured. Add [schemes.NAME] to the configuration, or an account with a redirect "
                    + "URI of that scheme, and reload.")
        }
        let feed = DeepLinkFeed(listener, now: { [broker] in broker.now.seconds })
        let fields = HTTPFields([("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
        return ServerResponse(
            status: 200, fields: fields,
            stream: AsyncStream(unfolding: { await feed.next() }, onCancel: { feed.stop() }))
    }

    func acknowledgeDeepLink(_ call: Call) async throws(Problem) -> ServerResponse {
        let text = call.parameters["id"] ?? ""
        guard let id = UInt64(text), api.deepLinks?.acknowledge(id) == true else {
            throw Problem(.notFound, "There is no such link. A link that is not acknowledged is kept for one minute.")
        }
        return ServerResponse(json: ["id": .string(String(id)), "acknowledged": true])
    }
}

/// The events for one listener. Only here a link's URL leaves the daemon.
final class DeepLinkFeed: Sendable {
    private let listener: LinkListener
    private let now: @Sendable () -> Int
    private let state = Mutex((isFirst: true, isOver: false))

    /// How often a comment is sent, so that a broken connection is noticed.
    private static let heartbeat: Duration = .seconds(15)

    init(_ listener: LinkListener, now: @escaping @Sendable () -> Int) {
        self.listener = listener
        self.now = now
    }

    /// The next bytes; nil at the end.
    func next() async -> [UInt8]? {
        let (isFirst, isOver) = state.withLock { state in
            defer { state.isFirst = false }
            return state
        }
        // A comment is sent at once, so that the app knows that the stream has begun.
        if isFirst { return Array(": listening\n\n".utf8) }
        guard !isOver else { return nil }
        switch await listener.next(within: DeepLinkFeed.heartbeat) {
        case .links(let links): return links.flatMap(DeepLinkFeed.encode)
        case .quiet: return Array(": still here\n\n".utf8)
        case .replaced: return last(.listenerReplaced, ["scheme": .string(listener.scheme), "at": .integer(now())])
        case .removed: return last(.dropped, ["reason": "the scheme is not configured any more"])
        case .cancelled:
            stop()
            return nil
        }
    }

    /// If a client disappears between two events, nothing is cancelled: the stream is released, and with it the
    /// listener.
    deinit { listener.stop() }

    func stop() {
        state.withLock { $0.isOver = true }
        listener.stop()
    }

    private func last(_ event: SchemeEvent, _ data: JSON) -> [UInt8] {
        stop()
        return event.bytes(data)
    }

    static func encode(_ link: DeepLink) -> [UInt8] {
        let id = String(link.id)
        return SchemeEvent.deepLink.bytes(
            id: id,
            [
                "id": .string(id), "scheme": .string(link.scheme), "url": .string(link.url.revealed()),
                "at": .integer(link.at.seconds),
            ])
    }
}

extension Component {
    fileprivate static let schemeEvent = Component.event("SchemeEvent", SchemeEvent.allCases)
    fileprivate static let acknowledgement = Component(
        "Acknowledgement", [.required("id", .string), .required("acknowledged", .boolean)])
}
