internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

extension SocketAPI {
    func listFlows(_ call: Call) async -> ServerResponse {
        let views = await broker.flows()
        return ServerResponse(json: ["flows": .array(views.map { flow($0, call.language) })])
    }

    func getFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let wait = try call.seconds("wait") ?? 0
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.flow(id, waiting: .seconds(wait))
        }
        return ServerResponse(json: flow(view, call.language))
    }

    func withdrawFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let isForAll = try call.flag("all")
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in try await broker.cancel(id, isForAll: isForAll) }
        return ServerResponse(json: flow(view, call.language))
    }

    func deliverCallback(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let url = try call.text("url") else { throw call.invalid("url", "it is required") }
        let isTold = try call.truth("notify")
        if let answer = try diagnosticLink(url, call) { return answer }
        if let answer = try await deepLink(url, isTold: isTold, call) { return answer }
        var verdict = await broker.receive(url)
        if case .ignored = verdict, let reason = await deepLinks?.whyForeign(url) {
            verdict = .ignored(reason)
        }
        switch verdict {
        case .completed(let id), .failed(let id, _), .noted(let id), .outdated(let id):
            let view = try await call.ask { () throws(BrokerError) in try await broker.flow(id) }
            return ServerResponse(json: await answer(view, after: verdict, isTold: isTold, call))
        case .ignored, .ended: throw await problem(after: verdict, isTold: isTold, call)
        }
    }

    /// A wrong code leaves the flow as it is.
    func verifyFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        if let credential = try call.object("credential") {
            return try await verifyFlow(id, credential: credential, call)
        }
        let (code, hash) = (try call.secret("code"), try call.secret("token_hash"))
        let origin = CodeOrigin(
            email: try call.text("email"), phone: try call.text("phone"), kind: try call.text("type"))
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.verify(id, code: code, tokenHash: hash, origin: origin)
        }
        return ServerResponse(json: flow(view, call.language))
    }

    func resendFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        let captcha = try call.secret("captcha_token")
        let view = try await call.ask { () throws(BrokerError) in try await broker.resend(id, captcha: captcha) }
        return ServerResponse(json: flow(view, call.language))
    }

    /// Where the codes of a change of the user may come from, and what to tell the person.
    private func addConfirmations(to object: inout JSONObject, _ view: FlowView, _ language: Language) {
        object["awaiting"] = .array(
            view.awaitedCodes.map { origin in
                var place = JSONObject()
                place["type"] = origin.kind.map { .string($0) }
                place["email"] = origin.email.map { .string($0) }
                place["phone"] = origin.phone.map { .string($0) }
                return .object(place)
            })
        let hasMail = view.awaitedCodes.contains { $0.email != nil }
        let message: PersonMessage? = view.isHalfConfirmed ? .oneConfirmed : hasMail ? .checkEmail : nil
        object["user_message"] = message.map { .string($0.text(in: language.ofMessages)) }
    }

    /// A flow as JSON.
    func flow(_ view: FlowView, _ language: Language) -> JSON {
        var object = JSONObject([
            .init("id", .string(view.id)), .init("account", .string(view.account.rawValue)),
            .init("method", .string(view.method)), .init("status", .string(view.status.word)),
        ])
        if view.status == .pending {
            object["waiting_for"] = .string(view.waitingFor)
            if !view.authorizationURL.isEmpty { object["authorization_url"] = .string(view.authorizationURL) }
            if !view.openURL.isEmpty { object["open_url"] = .string(view.openURL) }
            if !view.openAddresses.isEmpty { object["open_urls"] = .array(view.openAddresses.map(\.json)) }
            object["resend_after"] = view.resendAfter.map { .integer($0) }
            object["challenge_id"] = view.passkey.map { .string($0.id) }
            object["options"] = view.passkey.map { .object($0.options) }
            object["user_code"] = view.device.map { .string($0.userCode) }
            object["verification_uri"] = view.device.map { .string($0.verificationURI) }
            object["verification_uri_complete"] = view.device?.verificationURIComplete.map { .string($0) }
            if view.waitingFor == "email_confirmation" {
                object["user_message"] = .string(PersonMessage.checkEmail.text(in: language.ofMessages))
            }
            if view.changesUser { addConfirmations(to: &object, view, language) }
        }
        if !view.redirectURI.isEmpty { object["redirect_uri"] = .string(view.redirectURI) }
        object["expires_at"] = .integer(view.expiresAt)
        switch view.status {
        case .failed(let error), .expired(let error):
            let problem = Problem(error, language: language, endedSignIn: true)
            object["error"] = problem.json
            object["user_message"] = problem.userMessage.map { .string($0) }
        case .pending, .completed, .cancelled: break
        }
        return .object(object)
    }
}

extension OpenAddress {
    /// What became of an address that a program was to open.
    fileprivate var json: JSON {
        var object = JSONObject([.init("url", .string(url))])
        switch visit {
        case .none: object["status"] = "unused"
        case .fetched: object["status"] = "fetched"
        case .foreign(let uid):
            object["status"] = "foreign"
            object["uid"] = uid.map { .integer(Int($0)) }
        }
        return .object(object)
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
