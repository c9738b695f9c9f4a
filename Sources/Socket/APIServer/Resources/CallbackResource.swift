internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth

/// URLs from outside: callbacks, links for apps, and test links of `ringback doctor`. A user who followed a link sees
/// neither page nor terminal: with `"notify": true` a notification tells the result.
struct CallbackResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .deliverCallback, "Deliver a callback from outside; 202: it is a link for an app",
            body: .members(.required("url"), .optional("notify", as: .boolean)), statuses: [200, 202],
            .json(
                "CallbackResult", .optional("flow", as: .component(.flow)),
                .optional(
                    "deep_link",
                    as: .object([.required("id", .string), .required("scheme", .string), .required("heard", .boolean)])),
                .optional("diagnostic_link", as: .component(.diagnosticLink)), .optional("notified", as: .boolean)),
            errors: [.invalidCallback, .validationFailed, .flowExpired, .flowNotFound],
            CallbackResource.deliverCallback)
    ]

    func deliverCallback(_ call: Call) async throws(Problem) -> ServerResponse {
        let url = try call.required("url")
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
            return ServerResponse(await answer(view, after: verdict, isTold: isTold, call))
        case .ignored, .ended, .expired: throw await problem(after: verdict, isTold: isTold, call)
        }
    }

    private func answer(
        _ view: FlowView, after verdict: CallbackVerdict, isTold: Bool, _ call: Call
    ) async -> JSONObject {
        var flow = view.json(in: call.language)
        if case .outdated = verdict { flow["user_message"] = .string(UserMessage.olderLink.text(in: call.language)) }
        guard isTold else { return ["flow": flow] }
        var verdict = verdict
        // A user who has confirmed a new address was signed in before, so that no sign-in is reported.
        if case .completed(let id) = verdict, view.changesUser { verdict = .noted(flow: id) }
        let isNotified = await daemon.tellOfCallback(verdict, view.account, flow["user_message"]?.string)
        return ["flow": flow, "notified": isNotified]
    }

    private func problem(after verdict: CallbackVerdict, isTold: Bool, _ call: Call) async -> Problem {
        let error: BrokerError =
            if case .ignored(let reason, _) = verdict { .invalidCallback(reason) } else { .flowEnded }
        var problem = Problem(error, language: call.language)
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
        let executable = call.process.flatMap { ProcessFacts.executable(of: $0) }
        switch api.diagnosticLinks.receive(url, from: executable) {
        case .other: return nil
        case .unknown:
            throw Problem(.invalidCallback, "This is a test link that no program waits for any more.")
        case .arrived(let link): return ServerResponse(["diagnostic_link": link.json])
        }
    }

    /// The response to a URL that was no callback but a link for an app; nil if it may be a callback.
    private func deepLink(_ url: String, isTold: Bool, _ call: Call) async throws(Problem) -> ServerResponse? {
        guard let deepLinks = api.deepLinks else { return nil }
        switch await deepLinks.receive(url) {
        case .callback: return nil
        case .refused(let reason): throw await problem(ofForeign: reason, isTold: isTold, call)
        case .kept(let link, let isHeard):
            let members: JSONObject = ["id": String(link.id), "scheme": link.scheme, "heard": isHeard]
            return ServerResponse(status: 202, ["deep_link": members])
        }
    }
}

struct DeepLinkResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .streamDeepLinks, "The links of a scheme for the app that listens, as server-sent events",
            query: .required("scheme", text: "The scheme, without its colon"), .events(.schemeEvent),
            errors: [.notFound, .validationFailed], DeepLinkResource.streamDeepLinks),
        Route(
            .acknowledgeDeepLink, "Acknowledge a link",
            .json("Acknowledgement", .required("id"), .required("acknowledged", as: .boolean)), errors: [.notFound],
            DeepLinkResource.acknowledgeDeepLink),
    ]

    /// Server-sent events. Last-Event-ID is ignored: a link is sent again until it is acknowledged.
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
        return ServerResponse(events: EventFeed(listener, now: { [broker] in broker.now.seconds }))
    }

    func acknowledgeDeepLink(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let id = UInt64(call["id"]), api.deepLinks?.acknowledge(id) == true else {
            throw Problem(.notFound, "There is no such link. A link that is not acknowledged is kept for one minute.")
        }
        return ServerResponse(["id": String(id), "acknowledged": true])
    }
}

extension EventFeed {
    /// The links for one listener. Only here a link's URL leaves the daemon.
    convenience init(_ listener: LinkListener, now: @escaping @Sendable () -> Int) {
        self.init(first: Array(": listening\n\n".utf8), leave: { listener.stop() }) { bound in
            switch await listener.next(within: bound) {
            case .links(let links): .bytes(links.flatMap(EventFeed.encode))
            case .quiet: .quiet
            case .replaced:
                .end(SchemeEvent.listenerReplaced.bytes(["scheme": .string(listener.scheme), "at": .integer(now())]))
            case .removed: .end(SchemeEvent.dropped.bytes(["reason": "the scheme is not configured any more"]))
            case .cancelled: .end(nil)
            }
        }
    }

    private static func encode(_ link: DeepLink) -> [UInt8] {
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
}
