internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth

struct FlowResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .listFlows, "Every flow that is remembered, oldest first", .json(.flows), FlowResource.listFlows),
        Route(
            .getFlow, "A flow, once it has left pending or the wait is over",
            query: [.optional("wait", .integer, "Seconds to wait, at most 600")], .json(.flow),
            errors: [.flowNotFound, .validationFailed], FlowResource.getFlow),
        Route(
            .cancelFlow, "Take back one sign-in call; the flow is cancelled when none is left",
            query: [.optional("all", .boolean, "Cancel for all callers; may be repeated")], .json(.flow),
            errors: [.flowNotFound, .validationFailed], FlowResource.cancelFlow),
        Route(
            .verifyFlow, "Redeem the code that a flow waits for, or an authenticator's response",
            body: .members([
                .optional("code", .string), .optional("token_hash", .string), .optional("email", .string),
                .optional("phone", .string), .optional("credential", .anyObject, Schema.credentialText),
                .optional("type", .words(["email_change", "phone_change"])),
            ]), .json(.flow), errors: .ofFlow, FlowResource.verifyFlow),
        Route(
            .resendFlow, "Send a flow's message again, not before its resend_after",
            body: .members([.optional("captcha_token", .string)]), .json(.flow), errors: .ofFlow,
            FlowResource.resendFlow),
    ]

    func listFlows(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.flows()
        return ServerResponse(json: ["flows": .array(views.map { $0.json(in: call.language) })])
    }

    func getFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let wait = try call.duration("wait") ?? .zero
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.flow(id, waiting: wait)
        }
        return ServerResponse(json: view.json(in: call.language))
    }

    func cancelFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let isForAll = try call.flag("all")
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in try await broker.cancel(id, isForAll: isForAll) }
        return ServerResponse(json: view.json(in: call.language))
    }

    /// A wrong code does not end the flow.
    func verifyFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        if let credential = try call.object("credential") {
            return try await verify(id, credential: credential, call)
        }
        let (code, hash) = (try call.secret("code"), try call.secret("token_hash"))
        let origin = CodeOrigin(
            email: try call.text("email"), phone: try call.text("phone"), kind: try call.text("type"))
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.verify(id, code: code, tokenHash: hash, origin: origin)
        }
        return ServerResponse(json: view.json(in: call.language))
    }

    func resendFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        let captcha = try call.secret("captcha_token")
        let view = try await call.ask { () throws(BrokerError) in try await broker.resend(id, captcha: captcha) }
        return ServerResponse(json: view.json(in: call.language))
    }

    /// Redeems an authenticator's response, in place of a code.
    private func verify(_ id: String, credential: JSONObject, _ call: Call) async throws(Problem) -> ServerResponse {
        for other in ["code", "token_hash", "email", "phone", "type"] where call.has(other) {
            throw call.invalid(other, "it cannot be combined with credential")
        }
        let view = try await call.ask { () throws(BrokerError) in try await broker.verify(id, credential: credential) }
        return ServerResponse(json: view.json(in: call.language))
    }
}

extension Component {
    static let flows = Component("Flows", [.required("flows", .array(.component(.flow)))])
}

extension FlowView {
    /// The messages whose codes a change of the user waits for, and the sentence for the user.
    private func addConfirmations(to object: inout JSONObject, _ language: Language) {
        object["awaiting"] = .array(
            details.codes.map { origin in
                var place = JSONObject()
                place["type"] = origin.kind.map { .string($0) }
                place["email"] = origin.email.map { .string($0) }
                place["phone"] = origin.phone.map { .string($0) }
                return .object(place)
            })
        let hasMail = details.codes.contains { $0.email != nil }
        let message: UserMessage? = details.isHalfConfirmed ? .oneConfirmed : hasMail ? .checkEmail : nil
        object["user_message"] = message.map { .string($0.text(in: language)) }
    }

    /// The flow as the API shows it.
    func json(in language: Language) -> JSON {
        var object = JSONObject([
            .init("id", .string(id)), .init("account", .string(account.rawValue)),
            .init("method", .string(method.rawValue)), .init("status", .string(status.word)),
        ])
        if status == .pending {
            object["waiting_for"] = .string(waitingFor.rawValue)
            // Our own page is opened by an address that works once.
            if !authorizationURL.isEmpty, details.words == nil {
                object["authorization_url"] = .string(authorizationURL)
            }
            if !openURL.isEmpty { object["open_url"] = .string(openURL) }
            object["open_url_error"] = openURLError.map { Problem($0, language: language).json }
            if !openAddresses.isEmpty { object["open_urls"] = .array(openAddresses.map(\.json)) }
            object["words"] = details.words.map { .string($0) }
            object["resend_after"] = resendAfter.map { .integer($0.seconds) }
            object["challenge_id"] = details.challenge.map { .string($0.id) }
            object["options"] = details.challenge.map { .object($0.options) }
            object["user_code"] = details.device.map { .string($0.userCode) }
            object["verification_uri"] = details.device.map { .string($0.verificationURI) }
            object["verification_uri_complete"] = details.device?.verificationURIComplete.map { .string($0) }
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
        return .object(object)
    }
}

extension OpenAddress {
    /// The status of a URL that a program was asked to open.
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

extension Component {
    static let flow = Component(
        "Flow",
        [
            .required("id", .string), .required("account", .string), .required("method", .string),
            .required("status", .words(["pending", "completed", "failed", "cancelled", "expired"])),
            .optional("waiting_for", .words(WaitingFor.allCases.map(\.rawValue))),
            .optional("authorization_url", .string), .optional("open_url", .string),
            .optional("open_url_error", .component(.problem)), .optional("open_urls", .array(openAddress)),
            .optional("words", .string, "Two words that stand on Ringback's own sign-in page too"),
            .optional("challenge_id", .string),
            .optional("options", .anyObject), .optional("user_code", .string),
            .optional("verification_uri", .string), .optional("verification_uri_complete", .string),
            .optional("redirect_uri", .string), .required("expires_at", .integer),
            .optional("resend_after", .integer), .optional("awaiting", .array(.anyObject)),
            .optional("error", .component(.problem)), .optional("user_message", .string),
        ])

    /// A URL that a program was asked to open, and its status.
    private static let openAddress: Schema = .object([
        .required("url", .string), .required("status", .words(["unused", "fetched", "foreign"])),
        .optional("uid", .integer),
    ])
}
