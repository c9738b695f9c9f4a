internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

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
        case .kept(let link, let isHeard):
            return ServerResponse(
                status: 202,
                json: [
                    "deep_link": [
                        "id": .string(String(link.id)), "scheme": .string(link.scheme), "heard": .bool(isHeard),
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
