public import BrokerCore
internal import Glibc
internal import HTTPMessages
public import LocalHTTP
internal import Records
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON
internal import Synchronization

/// What a restricted socket serves: a reduced status, the accounts that it shows, and their access tokens within its
/// ceiling. Everything else, whatever it is, is 403 `policy_denied`: what is allowed is listed here, not what is not.
public struct ExposedAPI: Sendable {
    let api: SocketAPI
    let exposure: Exposure
    let policy: Policy
    /// Whom the records have been told of.
    private let refused = Refused()

    /// - Parameter api: the whole of what is served a part of.
    public init(_ api: SocketAPI, showing exposure: Exposure) {
        self.api = api
        self.exposure = exposure
        policy = Policy(owner: api.owner, showing: exposure)
    }

    /// More programs than one container runs.
    private static let maxConnections = 64
    /// The parameters of `session` that a restricted socket has. All others ask for more than a narrow access token.
    private static let parameters: Set = ["min_valid", "timeout", "scope", "subject", "kind", "issuer"]

    /// A server of it. The owner of the process, root and the users who are named connect.
    public func server() -> HTTPServer {
        var limits = ServerLimits()
        limits.maxConnections = ExposedAPI.maxConnections
        limits.writeTimeout = .seconds(30)
        limits.cancelsAtShutdown = true
        return HTTPServer(limits: limits, accepts: accepts, refusal: SocketAPI.refusal, handler: respond)
    }

    @Sendable func accepts(_ peer: Peer) -> Bool {
        guard case .local(let uid, _) = peer else { return false }
        if policy.admits(uid: uid) { return true }
        // Whoever set it up needs to know which uid a container's user has out here.
        if refused.isNew(uid) { api.records?.noteRefused(uid: uid, at: exposure) }
        return false
    }

    @Sendable func respond(_ request: ServerRequest) async -> ServerResponse {
        do throws(Problem) {
            try api.refuseBrowsers(request)
            // Before anything of the request is looked at: what is not served has no mistakes of its own.
            guard case .route(let route, let parameters) = Route.match(method: request.method, path: request.path),
                ExposedAPI.routes.contains(route.id)
            else { throw denied("only status, accounts and access tokens are served") }
            // The timer that closes the socket may be a little late.
            guard !api.broker.isOver(exposure) else { throw denied("its time is over, and nothing is served") }
            let facts = try facts(of: request, route, parameters["account"])
            return try await answer(try Call(request, route, parameters, facts))
        } catch {
            return error.response
        }
    }

    private static let routes: Set<Route.ID> = [
        .getStatus, .listAccounts, .getAccount, .getSession, .getSessionByIssuer,
    ]

    private func answer(_ call: Call) async throws(Problem) -> ServerResponse {
        switch call.route.id {
        case .getStatus: return await status()
        case .listAccounts: return await listAccounts(call)
        case .getAccount: return try await getAccount(call)
        case .getSession, .getSessionByIssuer:
            try checkParameters(call)
            let isNamed = call.route.id == .getSession
            return try await session(of: isNamed ? try call.account() : try await account(call), call)
        default: throw denied("only status, accounts and access tokens are served")
        }
    }

    private func denied(_ what: String) -> Problem {
        Problem(.policyDenied, "This is the restricted socket “\(exposure.name)”: \(what) here.")
    }

    /// The policy's word on the request; and who asks, once for a connection.
    private func facts(
        of request: ServerRequest, _ route: Route, _ account: String?
    ) throws(Problem) -> ConnectionFacts {
        guard case .local(let uid, let pid) = request.peer else { throw denied("nothing is served to you") }
        let decision = policy.decide(
            PolicyPeer(uid: uid, pid: pid), account: account, operation: route.operation.rawValue)
        let known = request.memory.value as? ConnectionFacts
        let facts = ConnectionFacts(
            decision: decision,
            caller: known?.caller ?? api.records?.audit.caller(uid: uid, pid: pid, at: api.broker.now),
            exposure: exposure.name)
        request.memory.value = facts
        guard decision.isAllowed else {
            throw denied(account.map { _ in "this account is not shown" } ?? "nothing is served to you")
        }
        return facts
    }

    // MARK: Reading

    private func status() async -> ServerResponse {
        let views = await shown()
        let counts = AccountState.allCases.map { state in
            JSONObject.Member(state.rawValue, .integer(views.count { $0.state == state }))
        }
        var grant = JSONObject([
            .init("name", .string(exposure.name)),
            .init("accounts", .array(exposure.accounts.map { .string($0.rawValue) })),
        ])
        grant["scope"] = exposure.ceiling.map { .string($0.joined(separator: " ")) }
        grant["expires_at"] = exposure.expiry.map { .integer(api.broker.instant(of: $0).at) }
        return ServerResponse(json: [
            "version": .string(api.daemon.version), "uptime": .integer(api.uptime),
            "vault": ["locked": .bool(api.broker.vault.status.isLocked)],
            "accounts": .object(JSONObject(counts)), "policy": .string(policy.name), "grant": .object(grant),
        ])
    }

    private func shown() async -> [AccountView] {
        await api.broker.accounts().filter { exposure.shows($0.name.rawValue) }
    }

    private func listAccounts(_ call: Call) async -> ServerResponse {
        let views = await shown()
        return ServerResponse(json: ["accounts": .array(views.map { account($0, call.language) })])
    }

    private func getAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let view = try await call.ask { () throws(BrokerError) in try await api.broker.account(name) }
        return ServerResponse(json: account(view, call.language))
    }

    /// Without what concerns the daemon's own machine: the file that it is configured in, and a sign-in under way.
    private func account(_ view: AccountView, _ language: Language) -> JSON {
        var object = api.account(view, language).object ?? JSONObject()
        object["source"] = .string("grant \(exposure.name)")
        object["flow"] = nil
        // Who is signed in, for a program that shows it or logs in to a mail server; what else the provider tells of the
        // person is not for a narrow token's holder.
        if let user = object["user"]?.object {
            object["user"] = .object(JSONObject(user.members.filter { ["sub", "id", "email"].contains($0.name) }))
        }
        return .object(object)
    }

    // MARK: Tokens

    /// Of an issuer that only accounts which are not shown have, it is not told that they exist.
    private func account(_ call: Call) async throws(Problem) -> AccountName {
        guard let issuer = call.query("issuer") else { throw call.invalid("issuer", "it is required here") }
        return try await call.ask { () throws(BrokerError) in
            try await api.broker.account(issuer: issuer, among: exposure.accounts)
        }
    }

    /// What a token may be asked for by.
    private func checkParameters(_ call: Call) throws(Problem) {
        for parameter in call.queryNames where !ExposedAPI.parameters.contains(parameter) {
            throw denied("\(parameter) is not served")
        }
        if try call.query("kind", oneOf: ["access_token", "id_token"]) == "id_token" {
            throw denied("an ID token is not served")
        }
    }

    private func session(of name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        var query = SessionQuery()
        query.minValid = try call.seconds("min_valid")
        if let timeout = try call.seconds("timeout") { query.timeout = .seconds(timeout) }
        query.subject = call.query("subject")
        query.key = try key(of: name, call)
        let wanted = query
        try await refuseWider(wanted, than: name, call)
        let handOut = try await call.ask { () throws(BrokerError) in try await api.broker.session(name, wanted) }
        guard exposure.permits(handOut.token) else {
            throw denied(
                "the provider of \(name) did not say that the token is good for no more than "
                    + "“\(exposure.ceiling?.joined(separator: " ") ?? "")”, so it is not served")
        }
        api.noteHandOut(call.facts, handOut, wanted.key, .token)
        var object = EncodedHandOuts.members(of: handOut, isIDToken: false)
        if let (expiresAt, remaining) = api.broker.expiry(of: handOut.token) {
            object["expires_at"] = .integer(expiresAt)
            object["expires_in"] = .integer(remaining)
        }
        return ServerResponse(json: .object(object))
    }

    /// Without a ceiling the session's own token is one: a service's provider might give more to whoever asks for it.
    private func refuseWider(_ query: SessionQuery, than name: AccountName, _ call: Call) async throws(Problem) {
        guard exposure.ceiling == nil, let asked = query.key.scopes else { return }
        var own = query
        own.key = .own
        own.minValid = nil
        let usual = own
        let handOut = try await call.ask { () throws(BrokerError) in try await api.broker.session(name, usual) }
        let scopes = Set((handOut.scope ?? "").split(separator: " ").map(String.init))
        guard scopes.isSuperset(of: asked) else { throw denied("a scope beyond the session's own is not served") }
    }

    /// Which token: as narrow as asked for, else as narrow as the ceiling; the session's own where it is that already.
    private func key(of name: AccountName, _ call: Call) throws(Problem) -> TokenKey {
        let key = try call.tokenKey()
        guard key != .own else {
            if exposure.ceiling == nil { return .own }
            if let own = api.broker.board.current(name.rawValue)?.entry.handOut.token, exposure.permits(own) {
                return .own
            }
            return TokenKey(scopes: exposure.ceiling)
        }
        guard case .local(let uid, let pid) = call.request.peer,
            policy.decide(
                PolicyPeer(uid: uid, pid: pid), account: name.rawValue, operation: call.route.operation.rawValue,
                token: key
            ).isAllowed
        else { throw denied("a scope beyond “\(exposure.ceiling?.joined(separator: " ") ?? "")” is not served") }
        return key
    }

    /// Users who were turned away, each once.
    private final class Refused: Sendable {
        private let uids = Mutex<Set<UInt32>>([])
        func isNew(_ uid: UInt32) -> Bool { uids.withLock { $0.count < 64 && $0.insert(uid).inserted } }
    }
}
