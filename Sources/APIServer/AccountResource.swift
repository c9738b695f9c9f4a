internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON

extension SocketAPI {
    func listAccounts(_ call: Call) async -> ServerResponse {
        let views = await broker.accounts()
        return ServerResponse(json: ["accounts": .array(views.map { account($0, call.language) })])
    }

    func getAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let view = try await call.ask { () throws(BrokerError) in try await broker.account(name) }
        return ServerResponse(json: account(view, call.language))
    }

    /// An account as JSON.
    func account(_ view: AccountView, _ language: Language) -> JSON {
        var object = JSONObject([
            .init("name", .string(view.name.rawValue)), .init("provider", .string(view.provider)),
            .init("state", .string(view.state.rawValue)), .init("source", .string(view.source)),
        ])
        if view.isStale { object["stale"] = true }
        object["subject"] = view.subject.map { .string($0) }
        object["user"] = view.user.map { .object($0) }
        object["expires_at"] = view.expiresAt.map { .integer($0) }
        object["flow"] = view.flow.map { ["id": .string($0.id), "method": .string($0.method)] }
        object["error"] = view.error.map { Problem($0, language: language).json }
        return .object(object)
    }

    func signIn(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        var request = SignInRequest()
        request.method = try call.text("method") ?? "browser"
        if request.method == "browser" { try refuseFieldsOfOtherMethods(call) }
        request.scopes = try call.text("scopes")?.split(separator: " ").map(String.init)
        if request.scopes?.isEmpty == true {
            throw call.invalid("scopes", "it is empty; leave it out for the account's own scopes")
        }
        request.parameters = try call.texts("params")
        if let reserved = request.parameters.first(where: { Broker.reservedParameters.contains($0.0) })?.0 {
            throw call.invalid("params.\(reserved)", "Ringback sets this parameter itself")
        }
        request.timeout = try call.number("timeout", in: 1...3_600)
        request.switchesSubject = try call.truth("switch_subject")
        let wanted = request
        let started = try await call.ask { () throws(BrokerError) in try await broker.signIn(name, wanted) }
        return ServerResponse(status: started.isNew ? 201 : 200, json: flow(started.flow, call.language))
    }

    /// What belongs to sign-in methods that this version does not have. Taking it in silence would be a pretence.
    private static let fieldsOfOtherMethods = [
        "oauth_provider", "email", "phone", "password", "data", "channel", "captcha_token", "id_token", "nonce",
        "access_token", "refresh_token", "domain", "provider_id",
    ]

    private func refuseFieldsOfOtherMethods(_ call: Call) throws(Problem) {
        for name in SocketAPI.fieldsOfOtherMethods where call.has(name) {
            throw call.invalid(name, "a sign-in by browser has no such field")
        }
    }
}
