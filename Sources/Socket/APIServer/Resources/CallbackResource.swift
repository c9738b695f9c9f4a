internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth
internal import Synchronization

/// URLs from outside: callbacks, links for apps, and test links of `ringback doctor`. A user who followed a link of a
/// custom scheme sees neither a page nor a terminal: with `"notify": true` a notification tells them the result, and
/// the response says whether it was shown.
struct CallbackResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .deliverCallback, "Deliver a callback from outside; 202: it is a link for an app",
            body: .members([.required("url", .string), .optional("notify", .boolean)]), statuses: [200, 202],
            .json(.callbackResult), errors: [.invalidCallback, .validationFailed, .flowExpired, .flowNotFound],
            CallbackResource.deliverCallback)
    ]

    func deliverCallback(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let url = try call.text("url") else { throw call.invalid("url", "it is required") }
        let isTold = try call.truth("notify")
        if let answer = try diagnosticLink(url, call) { return answer }
        if let answer = try await deepLink(url, isTold: isTold, call) { return answer }
        let verdict = await broker.receive(url)
        if case .ignored = verdict, let reason = await api.deepLinks?.whyForeign(url) {
            throw await problem(ofForeign: reason, isTold: isTold, call)
        }
        switch verdict {
        case .completed(let id), .failed(let id, _), .noted(let id), .outdated(let id):
            let view = try await call.ask { () throws(BrokerError) in try await broker.flow(id) }
            return ServerResponse(json: await answer(view, after: verdict, isTold: isTold, call))
        case .ignored, .ended, .expired: throw await problem(after: verdict, isTold: isTold, call)
        }
    }

    /// The response to a callback of a flow.
    private func answer(_ view: FlowView, after verdict: CallbackVerdict, isTold: Bool, _ call: Call) async -> JSON {
        var object = JSONObject([.init("flow", view.json(in: call.language))])
        if case .outdated = verdict, case .object(var flow)? = object["flow"] {
            flow["user_message"] = .string(UserMessage.olderLink.text(in: call.language))
            object["flow"] = .object(flow)
        }
        if isTold {
            let message = object["flow"]?["user_message"]?.string
            var verdict = verdict
            // A user who has confirmed a new address was signed in before, so that no sign-in is reported.
            if case .completed(let id) = verdict, view.changesUser { verdict = .noted(flow: id) }
            object["notified"] = .bool(await daemon.tellOfCallback(verdict, view.account, message))
        }
        return .object(object)
    }

    /// The problem for a URL that ended no sign-in.
    private func problem(after verdict: CallbackVerdict, isTold: Bool, _ call: Call) async -> Problem {
        var problem: Problem
        if case .ignored(let reason, _) = verdict {
            problem = Problem(.invalidCallback(reason), language: call.language)
        } else {
            problem = Problem(.flowEnded, language: call.language)
        }
        if isTold { problem.extensions["notified"] = .bool(await daemon.tellOfCallback(verdict, nil, nil)) }
        return problem
    }

    /// The problem for a URL of another program. It was no sign-in, so that none has failed.
    private func problem(ofForeign reason: String, isTold: Bool, _ call: Call) async -> Problem {
        var problem = await problem(after: .ignored(.stated(reason)), isTold: isTold, call)
        problem.userMessage = nil
        return problem
    }

    /// The response to a test link that came back; nil if the URL is something else.
    private func diagnosticLink(_ url: String, _ call: Call) throws(Problem) -> ServerResponse? {
        var executable: String?
        if case .local(_, let pid) = call.request.peer { executable = ProcessFacts.executable(of: pid) }
        switch api.diagnosticLinks.receive(url, from: executable) {
        case .other: return nil
        case .unknown:
            throw Problem(.invalidCallback, "This is a test link that no program waits for any more.")
        case .arrived(let link): return ServerResponse(json: ["diagnostic_link": link.json])
        }
    }

    /// The response to a URL that was no callback but a link for an app; nil if it may be a callback.
    private func deepLink(_ url: String, isTold: Bool, _ call: Call) async throws(Problem) -> ServerResponse? {
        guard let deepLinks = api.deepLinks else { return nil }
        switch await deepLinks.receive(url) {
        case .callback: return nil
        case .refused(let reason):
            throw await problem(ofForeign: reason, isTold: isTold, call)
        case .kept(let link, let hasListener):
            return ServerResponse(
                status: 202,
                json: [
                    "deep_link": [
                        "id": .string(String(link.id)), "scheme": .string(link.scheme), "heard": .bool(hasListener),
                    ]
                ])
        }
    }
}

extension Component {
    fileprivate static let callbackResult = Component(
        "CallbackResult",
        [
            .optional("flow", .component(.flow)),
            .optional(
                "deep_link",
                .object([.required("id", .string), .required("scheme", .string), .required("heard", .boolean)])),
            .optional("diagnostic_link", .component(.diagnosticLink)), .optional("notified", .boolean),
        ])
}

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
