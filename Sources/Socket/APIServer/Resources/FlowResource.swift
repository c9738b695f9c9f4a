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
