internal import BrokerCore
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault

/// The questions that programs wait for, the user's answers, and what is remembered of them.
struct ConsentResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listConsentQuestions, "Every question that is open, oldest first",
            .json("ConsentQuestions", .required("consents", as: .array(.component(.consentQuestion)))),
            errors: [.notFound], ConsentResource.listConsentQuestions),
        Route(
            .answerConsent, "Answer a question; not from the control group or session that asked",
            body: .members(
                .required("decision", as: .oneOf(ConsentDecision.self)),
                .optional(
                    "remember", as: .pattern("^(once|session|always|[0-9]+[smhdw])$"),
                    text: "once (the default), session, a span such as 8h within the session, or always")),
            .json(
                "ConsentDecision", .required("id", "account"), .required("decision", as: .oneOf(ConsentDecision.self)),
                .required("remember")),
            errors: [.notFound, .validationFailed], ConsentResource.answerConsent),
        Route(
            .listRememberedConsents, "Every decision that is remembered, oldest first",
            .json("RememberedConsents", .required("consents", as: .array(.component(.rememberedConsent)))),
            errors: [.notFound], ConsentResource.listRememberedConsents),
        Route(
            .forgetConsent, "Forget a decision: the next request asks again", .json(.rememberedConsent),
            errors: [.notFound], ConsentResource.forgetConsent),
    ]

    func listConsentQuestions(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["consents": try desk().questions.map(\.json)])
    }

    func answerConsent(_ call: Call) async throws(Problem) -> ServerResponse {
        let desk = try desk()
        guard let decision = ConsentDecision(rawValue: try call.required("decision")) else {
            throw call.invalid("decision", "must be allow or deny")
        }
        let word = try call.text("remember") ?? "once"
        guard let remembering = ConsentDesk.Remembering(word) else {
            throw call.invalid("remember", "must be once, session, always, or a span such as 8h; 30d at most")
        }
        guard case .local(let uid, let pid) = call.request.peer else { throw Problem(.notFound) }
        let program = api.callingProgram(call).identity
        let question: ConsentQuestion
        do throws(ConsentDesk.Refusal) {
            question = try desk.answer(
                call["id"], decision, remembering, by: .program(program, uid: uid, pid: pid),
                at: api.answeringOrigin(call))
        } catch {
            switch error {
            case .unknown: throw Problem(.notFound, "No question with this id is open.")
            case .asker:
                throw Problem(
                    .policyDenied,
                    "The answer comes from the program that asked, or from its terminal or application. Answer the notice, "
                        + "or answer from another terminal.")
            case .sessionUnknown:
                throw call.invalid("remember", "nothing can be remembered: the program that asked is not known")
            case .notRootOwned:
                throw call.invalid(
                    "remember", "always is only for a program whose file root owns and nobody else can write to")
            case .notKept(let error): throw Problem(.internalError, "Nothing was decided. \(error.sentence)")
            }
        }
        return ServerResponse([
            "id": question.id, "account": question.account.rawValue, "decision": decision.rawValue, "remember": word,
        ])
    }

    func listRememberedConsents(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["consents": try desk().remembered.map(\.json)])
    }

    func forgetConsent(_ call: Call) async throws(Problem) -> ServerResponse {
        let desk = try desk()
        let found: RememberedConsent?
        let line = CallingProgram.line(of: call.process ?? 0).compactMap(ProcessFacts.executable)
        let program = api.callingProgram(call)
        do throws(ConsentDesk.Refusal) {
            found = try desk.forget(
                call["id"], by: Set(line + [program.identity.executable].compactMap(\.self)), at: program.origin)
        } catch {
            if error == .asker {
                throw Problem(
                    .policyDenied,
                    "The request comes from the program that was denied, or from its terminal or application. Forget the "
                        + "decision in another terminal.")
            }
            guard case .notKept(let error) = error else { throw Problem(.internalError) }
            throw Problem(.internalError, "Nothing was forgotten. \(error.sentence)")
        }
        guard let found else { throw Problem(.notFound, "No decision with this id is remembered.") }
        return ServerResponse(found.json)
    }

    private func desk() throws(Problem) -> ConsentDesk {
        guard let desk = daemon.consents else { throw Problem(.notFound, "This daemon asks for no consent.") }
        return desk
    }
}

extension SocketAPI {
    /// Waits for the user's consent if the account wants it. Returns what is left of `bound`, the time for the request.
    @discardableResult
    func consent(
        to use: ConsentUse, of account: AccountName, scope: [String]? = nil, _ call: Call, within bound: Duration
    ) async throws(Problem) -> Duration {
        let mayAsk = try call.query("consent", as: ConsentQuery.self) != .never
        guard let desk = daemon.consents, !desk.isFree(account.rawValue) else { return bound }
        let start = ContinuousClock.now
        let request = consentRequest(for: use, of: account, scope: scope, call)
        switch await desk.admit(request, within: bound, mayAsk: mayAsk) {
        case .allowed: return max(bound - (ContinuousClock.now - start), .zero)
        case .denied:
            throw Problem(
                .policyDenied, "The user does not allow \(request.program.text) to use the account \(account).")
        case .required(let isFlooded):
            throw Problem(
                .consentRequired,
                isFlooded
                    ? "The account \(account) may be used only with the user's consent, and too many questions were asked. Try again later."
                    : "The account \(account) may be used only with the user's consent.")
        case .timedOut:
            throw Problem(
                .consentTimeout,
                "The user has not answered whether this program may use the account \(account). For five minutes no question "
                    + "is asked.")
        case .cancelled: throw Problem(.cancelled, language: call.language)
        }
    }

    /// Waits for the user's consent to secrets that go with a request of an MCP account, beside the token that is asked
    /// for next.
    func consentToServer(of account: AccountName, _ call: Call, needsToken: Bool) async throws(Problem) {
        guard let desk = daemon.consents, !desk.isFree(account.rawValue) else { return }
        try await consent(to: .token, of: account, call, within: SocketAPI.serverBound)
        if needsToken { desk.letPass(consentRequest(for: .token, of: account, scope: nil, call)) }
    }

    /// The relay waits for 35 s for both responses.
    private static let serverBound = Duration.seconds(25)

    /// True if the program may use the account without a question.
    func hasConsent(to use: ConsentUse, of account: AccountName, _ call: Call) -> Bool {
        daemon.consents?.allowsAtOnce(consentRequest(for: use, of: account, scope: nil, call)) ?? true
    }

    private func consentRequest(
        for use: ConsentUse, of account: AccountName, scope: [String]?, _ call: Call
    ) -> ConsentDesk.Request {
        let caller = callingProgram(call)
        return ConsentDesk.Request(
            account: account, use: use, scope: scope?.joined(separator: " "), program: caller.identity,
            origin: caller.origin)
    }
}

enum ConsentQuery: String, CaseIterable {
    case never

    static let member = Member.optional(
        "consent", .oneOf(ConsentQuery.self), "never: if the user had to be asked, answer consent_required at once")
}

extension ConsentQuestion {
    var json: JSONObject {
        [
            "id": id, "account": account.rawValue, "operation": use.rawValue, "scope": scope, "program": program.json,
            "requested_at": requestedAt.seconds, "expires_at": expiresAt.seconds, "requests": requests,
        ]
    }
}

extension ProgramIdentity {
    var json: JSONObject {
        [
            "executable": executable, "unit": unit, "verified": isVerified, "changeable": !isRootOwned, "text": text,
        ]
    }
}

extension RememberedConsent {
    fileprivate var json: JSONObject {
        [
            "id": id, "account": account.rawValue, "decision": decision.rawValue, "executable": executable,
            "remember": scope == nil ? "always" : "session", "belongs_to": scope,
            "operation": exposes ? ConsentUse.exposedSocket.rawValue : ConsentUse.token.rawValue,
            "made_at": madeAt.seconds, "expires_at": expiry?.at.seconds,
        ]
    }
}

extension Component {
    static let program = Component(
        "Program", .optional("executable", text: "Its path; not there if the process has ended"), .optional("unit"),
        .required("verified", as: .boolean),
        .required("changeable", as: .boolean, text: "Others than root can write to the file"),
        .required("text", text: "For the user, on one line"))
    static let consentQuestion = Component(
        "ConsentQuestion", .required("id", "account"), .required("operation", as: .oneOf(ConsentUse.self)),
        .optional("scope"), .required("program", as: .component(.program)),
        .required("requested_at", "expires_at", as: .integer),
        .required("requests", as: .integer, text: "How many requests wait for the answer"))
    fileprivate static let rememberedConsent = Component(
        "RememberedConsent", .required("id", "account", "executable"),
        .required("decision", as: .oneOf(ConsentDecision.self)),
        .required("remember", as: .words(["session", "always"])),
        .optional("belongs_to", text: "The control group or session"),
        .required(
            "operation", as: .oneOf(ConsentUse.self), text: "token stands for all tokens, and for lookup"),
        .required("made_at", as: .integer), .optional("expires_at", as: .integer))
}
