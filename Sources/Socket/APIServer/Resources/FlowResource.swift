internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth

struct FlowResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listFlows, "Every flow that is remembered, oldest first",
            .json("Flows", .required("flows", as: .array(.component(.flow))))
        ) { (broker, call) throws(Problem) in ["flows": await broker.flows().map { $0.json(in: call.language) }] },
        Route(
            .getFlow, "A flow, once it has left pending or the wait is over",
            query: .optional("wait", as: .integer, text: "Seconds to wait, at most 600"), .json(.flow),
            errors: [.flowNotFound, .validationFailed]
        ) { (broker, call) throws(Problem) in
            let wait = try call.duration("wait") ?? .zero
            return try await call.flow { () throws(BrokerError) in try await broker.flow(call["flow"], waiting: wait) }
        },
        Route(
            .cancelFlow, "Take back one sign-in call; the flow is cancelled when none is left",
            query: .optional("all", as: .boolean, text: "Cancel for all callers; may be repeated"), .json(.flow),
            errors: [.flowNotFound, .validationFailed]
        ) { (broker, call) throws(Problem) in
            let isForAll = try call.flag("all")
            return try await call.flow { () throws(BrokerError) in
                try await broker.cancel(call["flow"], isForAll: isForAll)
            }
        },
        // A wrong code does not end the flow.
        Route(
            .verifyFlow, "Redeem the code that a flow waits for, or an authenticator's response",
            body: .members(
                .optional("code", "token_hash", "email", "phone"),
                .optional("credential", as: .anyObject, text: Schema.credentialText),
                .optional("type", as: .words(["email_change", "phone_change"]))), .json(.flow), errors: .ofFlow
        ) { (broker, call) throws(Problem) in
            if let credential = try call.object("credential") {
                for other in ["code", "token_hash", "email", "phone", "type"] where call.has(other) {
                    throw call.invalid(other, "it cannot be combined with credential")
                }
                return try await call.flow { () throws(BrokerError) in
                    try await broker.verify(call["flow"], credential: credential)
                }
            }
            let (code, hash) = (try call.secret("code"), try call.secret("token_hash"))
            let origin = CodeOrigin(
                email: try call.text("email"), phone: try call.text("phone"), kind: try call.text("type"))
            return try await call.flow { () throws(BrokerError) in
                try await broker.verify(call["flow"], code: code, tokenHash: hash, origin: origin)
            }
        },
        Route(
            .resendFlow, "Send a flow's message again, not before its resend_after",
            body: .members(.optional("captcha_token")), .json(.flow), errors: .ofFlow
        ) { (broker, call) throws(Problem) in
            let captcha = try call.secret("captcha_token")
            return try await call.flow { () throws(BrokerError) in
                try await broker.resend(call["flow"], captcha: captcha)
            }
        },
    ]
}

extension FlowView {
    private func addConfirmations(to object: inout JSONObject, _ language: Language) {
        let messages = details.codes.map { origin in
            ["type": origin.kind, "email": origin.email, "phone": origin.phone] as JSONObject
        }
        object["awaiting"] = messages.jsonValue
        let hasMail = details.codes.contains { $0.email != nil }
        let message: UserMessage? = details.isHalfConfirmed ? .oneConfirmed : hasMail ? .checkEmail : nil
        object["user_message"] = message.map { .string($0.text(in: language)) }
    }

    func json(in language: Language) -> JSONObject {
        var object: JSONObject = [
            "id": id, "account": account.rawValue, "method": method.rawValue, "status": status.word,
        ]
        if status == .pending {
            // Our own page is opened by an address that works once.
            let hasOwnPage = authorizationURL.isEmpty || details.words != nil
            let members: JSONObject = [
                "waiting_for": waitingFor.rawValue, "authorization_url": hasOwnPage ? nil : authorizationURL,
                "open_url": openURL.isEmpty ? nil : openURL,
                "open_url_error": openURLError.map { Problem($0, language: language).json },
                "open_urls": openAddresses.isEmpty ? nil : openAddresses.map(\.json), "words": details.words,
                "resend_after": resendAfter?.seconds, "challenge_id": details.challenge?.id,
                "options": details.challenge?.options,
                "user_code": details.device?.userCode, "verification_uri": details.device?.verificationURI,
                "verification_uri_complete": details.device?.verificationURIComplete,
            ]
            object.members += members.members
            if waitingFor == .emailConfirmation {
                object["user_message"] = .string(UserMessage.checkEmail.text(in: language))
            }
            if changesUser { addConfirmations(to: &object, language) }
        }
        if !redirectURI.isEmpty { object["redirect_uri"] = .string(redirectURI) }
        object["expires_at"] = .integer(expiresAt.seconds)
        switch status {
        case .failed(let error), .expired(let error):
            let problem = Problem(error, language: language, endedSignIn: true)
            object["error"] = problem.json
            object["user_message"] = problem.userMessage.map { .string($0) }
        case .completed where details.isRecovery:
            object["user_message"] = .string(UserMessage.choosePassword.text(in: language))
        case .pending: object["error"] = refusal.map { Problem($0, language: language).json }
        case .completed, .cancelled: break
        }
        return object
    }
}

extension OpenAddress {
    fileprivate var json: JSONObject {
        switch visit {
        case .none: ["url": url, "status": "unused"]
        case .fetched: ["url": url, "status": "fetched"]
        case .foreign(let uid): ["url": url, "status": "foreign", "uid": uid.map { Int($0) }]
        }
    }
}

extension FlowView.Status {
    var word: String {
        switch self {
        case .pending: "pending"
        case .completed: "completed"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .expired: "expired"
        }
    }
}

extension Component {
    static let flow = Component(
        "Flow", .required("id", "account", "method"),
        .required("status", as: .words(["pending", "completed", "failed", "cancelled", "expired"])),
        .optional("waiting_for", as: .words(WaitingFor.allCases.map(\.rawValue))),
        .optional(
            "authorization_url", "open_url", "challenge_id", "user_code", "verification_uri",
            "verification_uri_complete", "redirect_uri", "user_message"),
        .optional("open_url_error", "error", as: .component(.problem)),
        .optional("open_urls", as: .array(openAddress)),
        .optional("words", text: "Two words that stand on Ringback's own sign-in page too"),
        .optional("options", as: .anyObject), .required("expires_at", as: .integer),
        .optional("resend_after", as: .integer), .optional("awaiting", as: .array(.anyObject)))

    private static let openAddress: Schema = .object([
        .required("url", .string), .required("status", .words(["unused", "fetched", "foreign"])),
        .optional("uid", .integer),
    ])
}

/// The page of a flow, which the daemon opens for an app that cannot start a browser.
struct FlowPageResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .openFlow, "Open the page of a pending flow in the account's browser",
            body: .members(
                .optional("activation_token", text: "XDG_ACTIVATION_TOKEN, by which the window comes to the front")),
            .json(.flow), errors: [.flowNotFound, .flowExpired, .stateConflict, .portInUse, .validationFailed],
            FlowPageResource.open)
    ]

    /// The browser gets an `open_url` of its own: all users of the machine can read its arguments.
    func open(_ call: Call) async throws(Problem) -> ServerResponse {
        let token = try call.text("activation_token")
        let pending = try await call.ask { () throws(BrokerError) in
            let flow = try await broker.flow(call["flow"])
            guard flow.status == .pending else { throw .flowEnded }
            return flow
        }
        guard let url = try await call.ask({ () throws(BrokerError) in try await broker.openURL(of: pending.id) })
        else { throw Problem(.stateConflict, "The sign-in has no page to open.") }
        if let reason = await daemon.openPage(url, pending.account, token) {
            throw Problem(
                .stateConflict, "No browser was started: \(reason).",
                extensions: ["account": pending.account.rawValue, "cause": ProblemCause.browserNotStarted.rawValue])
        }
        var flow = try await call.ask { () throws(BrokerError) in try await broker.flow(pending.id) }
        flow.openURL = url
        return ServerResponse(flow.json(in: call.language))
    }
}

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
