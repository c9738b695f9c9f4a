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
        object["grant"] = view.grant.map { .string($0) }
        object["subject"] = view.subject.map { .string($0) }
        object["user"] = view.user.map { .object($0) }
        object["aal"] = view.assurance.map { .string($0) }
        object["migration"] = view.migratesFrom.map { ["from": .string($0), "to": .string(view.subject ?? "")] }
        object["next_aal"] = view.nextAssurance.map { .string($0) }
        object["expires_at"] = view.expiresAt.map { .integer($0) }
        object["flow"] = view.flow.map { ["id": .string($0.id), "method": .string($0.method)] }
        object["notice"] = view.notice.map { .string($0) }
        object["error"] = view.error.map { Problem($0, language: language).json }
        return .object(object)
    }

    func signIn(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let isProject = try await call.ask { () throws(BrokerError) in try await broker.isAtProject(name) }
        var request = SignInRequest()
        request.method = try call.text("method") ?? "browser"
        // What begins by a route of its own does not begin here.
        guard isProject ? Broker.projectMethods.contains(request.method) : true else {
            throw Problem(
                .methodUnsupported,
                "\(name) has no sign-in method “\(request.method)”. "
                    + "It has: \(Broker.projectMethods.joined(separator: ", ")).")
        }
        if isProject || ["browser", "device"].contains(request.method) {
            try call.refuseStrangers(to: request.method, isProject: isProject)
        }
        request.scopes = try scopes(call)
        request.parameters = try parameters(call)
        request.timeout = try call.number("timeout", in: 1...3_600)
        request.switchesSubject = try call.truth("switch_subject")
        request.callbackPort = try call.number("callback_port", in: 1...65_535)
        request.replaces = try call.truth("replace")
        request.process = call.process
        if isProject { request.project = try call.projectSignIn() }
        let wanted = request
        let started = try await call.ask { () throws(BrokerError) in try await broker.begin(name, wanted) }
        return try await beginning(started, of: name, call)
    }
}
