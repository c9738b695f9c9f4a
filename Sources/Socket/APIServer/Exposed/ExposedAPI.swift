public import BrokerCore
internal import Glibc
public import LocalHTTP
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault
internal import Synchronization

/// What a restricted socket serves: a reduced status, the accounts that it shows, and their access tokens within its
/// ceiling. Everything else is 403 `policy_denied`: what is allowed is listed here, not what is forbidden.
public struct ExposedAPI: Sendable {
    let api: SocketAPI
    let exposedSocket: ExposedSocket
    let policy: Policy
    private let refused = Refused()
    let allowance = Allowance()
    let isForRelay: Bool

    /// `isForRelay`: it is the socket of the `ringback-relay` of an MCP server, see ``relayServices``.
    public init(_ api: SocketAPI, showing exposedSocket: ExposedSocket, isForRelay: Bool = false) {
        self.api = api
        self.exposedSocket = exposedSocket
        self.isForRelay = isForRelay
        policy = Policy(owner: api.owner, showing: exposedSocket)
    }

    /// More than the programs of one container need.
    public static let mostConnections = 64

    /// A server of this API. The owner of the process, root and the users who are named may connect.
    public func server(maxConnections: Int = mostConnections) -> HTTPServer {
        var limits = ServerLimits()
        limits.maxConnections = maxConnections
        limits.cancelsAtShutdown = true
        return HTTPServer(limits: limits, accepts: accepts, refusal: SocketAPI.refusal, handler: respond)
    }

    @Sendable func accepts(_ peer: Peer) -> Bool {
        guard case .local(let uid, _) = peer else { return false }
        if isForRelay { return uid == api.owner }
        if policy.admits(uid: uid) { return true }
        // The user who made the socket needs to know which uid a container's user has on this machine.
        if refused.isNew(uid) { api.records?.noteRefused(uid: uid, at: exposedSocket) }
        return false
    }

    @Sendable func respond(_ request: ServerRequest) async -> ServerResponse {
        do throws(Problem) {
            try api.refuseBrowsers(request)
            // Checked before anything else in the request: an endpoint that is not served has no other errors.
            guard
                case .route(let route, let parameters) = Router.shared.match(
                    method: request.method, path: request.path),
                let service = (isForRelay ? ExposedAPI.relayServices : ExposedAPI.services)[route.endpoint]
            else { throw denied("only status, accounts and access tokens are served") }
            if !isForRelay { try refuseOtherKind(route.endpoint) }
            // The timer that closes the socket may be a little late.
            guard !api.broker.isOver(exposedSocket) else { throw denied("its time is over, and nothing is served") }
            // The relay refreshes only what it may request anyway.
            let operation = isForRelay ? .token : route.endpoint.operation
            let facts = try facts(of: request, operation, parameters["account"])
            let call = try Call(request, route, parameters, facts)
            try checkParameters(call, service.query)
            return try await service.handler(self)(call)
        } catch {
            return error.told(by: exposedSocket).response
        }
    }

    struct Service: Sendable {
        let query: Set<String>
        let handler: @Sendable (ExposedAPI) -> @Sendable (Call) async throws(Problem) -> ServerResponse
    }

    /// Everything else is denied, also other parameters of `session`: they request more than a downscoped access token.
    static let services: [Endpoint: Service] = [
        .getStatus: Service(query: [], handler: ExposedAPI.status),
        .listAccounts: Service(query: [], handler: ExposedAPI.listAccounts),
        .getAccount: Service(query: [], handler: ExposedAPI.getAccount),
        .getSession: Service(
            query: ["min_valid", "timeout", "scope", "subject", "kind"], handler: ExposedAPI.getSession),
        .getSessionByIssuer: Service(
            query: ["min_valid", "timeout", "scope", "subject", "kind", "issuer"],
            handler: ExposedAPI.getSessionByIssuer),
        .lookup: Service(query: [], handler: ExposedAPI.lookup),
        .makeProof: Service(query: [], handler: ExposedAPI.makeProof),
        .getMCPServer: Service(query: [], handler: ExposedAPI.mcpServer),
    ]

    func getSession(_ call: Call) async throws(Problem) -> ServerResponse {
        try await session(of: try call.account(), call)
    }

    private func getSessionByIssuer(_ call: Call) async throws(Problem) -> ServerResponse {
        try await session(of: try await account(call), call)
    }

    func denied(_ what: String) -> Problem {
        Problem(.policyDenied, "This is the restricted socket “\(exposedSocket.name)”: \(what) here.")
    }

    private func facts(
        of request: ServerRequest, _ operation: PolicyOperation, _ account: String?
    ) throws(Problem) -> ConnectionFacts {
        guard case .local(let uid, let pid) = request.peer else { throw denied("nothing is served to you") }
        let decision = policy.decide(PolicyPeer(uid: uid, pid: pid), account: account, operation: operation)
        let known = request.memory.value as? ConnectionFacts
        let caller = known?.caller ?? api.caller(of: request, uid, pid)
        let facts = ConnectionFacts(decision: decision, caller: caller, exposedSocket: exposedSocket.name)
        request.memory.value = facts
        guard decision.isAllowed else {
            guard exposedSocket.serves(operation) else {
                throw denied("no proof is served: the socket was made without “proof”,")
            }
            throw denied(account.map { _ in "this account is not shown" } ?? "nothing is served to you")
        }
        return facts
    }

    private func status(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await shown()
        let socket: JSONObject = [
            "name": exposedSocket.name, "accounts": exposedSocket.accounts.map(\.rawValue),
            "scope": exposedSocket.ceiling?.joined(separator: " "),
            "expires_at": exposedSocket.expiry.map { api.broker.instant(of: $0).at.seconds },
            "mcp": exposedSocket.order.mcp?.json,
        ]
        return ServerResponse([
            "version": api.daemon.version, "uptime": api.uptime,
            "vault": ["locked": api.broker.vault.status.isLocked] as JSONObject, "accounts": views.states,
            "policy": policy.name, "exposed_socket": socket,
        ])
    }

    private func shown() async -> [AccountView] {
        var views: [AccountView] = []
        for view in await api.broker.accounts() where exposedSocket.shows(view.name.rawValue) {
            if await isBound(view.name) { views.append(view) }
        }
        return views
    }

    /// False if the account has another provider or client than when it was exposed. Then the socket is about to close.
    private func isBound(_ name: AccountName) async -> Bool {
        guard let binding = await api.broker.binding(of: name) else { return true }
        return exposedSocket.isBound(name, to: binding)
    }

    func refuseAnother(_ name: AccountName) async throws(Problem) {
        guard await isBound(name) else {
            throw denied(
                "\(name) was configured for another provider or client since it was exposed, and is not served")
        }
    }

    func ask<Value>(_ call: Call, _ body: () async throws(BrokerError) -> Value) async throws(Problem) -> Value {
        do throws(BrokerError) { return try await body() } catch {
            throw Problem(elsewhere: error, language: call.language)
        }
    }

    private func listAccounts(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["accounts": await shown().map { account($0, call.language) }])
    }

    private func getAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        try await refuseAnother(name)
        let view = try await ask(call) { () throws(BrokerError) in try await api.broker.account(name) }
        return ServerResponse(account(view, call.language))
    }

    /// The members of an account that are shown. The file that configures it and a pending sign-in are not.
    static let told: Set<String> = [
        "name", "provider", "provider_host", "state", "source", "stale", "grant", "subject", "user", "aal", "next_aal",
        "expires_at", "ends_at", "refreshable", "error",
    ]

    private func account(_ view: AccountView, _ language: Language) -> JSONObject {
        var object = JSONObject(view.json(in: language).members.filter { ExposedAPI.told.contains($0.name) })
        object["source"] = .string("exposed socket \(exposedSocket.name)")
        object["error"] = view.error.map { Problem(elsewhere: $0, language: language).told(by: exposedSocket).json }
        // For a program that shows the user or logs in to a mail server. Other claims are not shown with such a token.
        if let user = object["user"]?.object {
            object["user"] = .object(JSONObject(user.members.filter { ["sub", "id", "email"].contains($0.name) }))
        }
        return object
    }

    /// The account of an issuer. If only accounts that are not shown have the issuer, it is as unknown as any other.
    private func account(_ call: Call) async throws(Problem) -> AccountName {
        guard let issuer = call.query("issuer") else { throw call.invalid("issuer", "it is required here") }
        return try await ask(call) { () throws(BrokerError) in
            try await api.broker.account(issuer: issuer, among: exposedSocket.accounts)
        }
    }

    private func checkParameters(_ call: Call, _ known: Set<String>) throws(Problem) {
        for parameter in call.queryNames where !known.contains(parameter) {
            throw denied("\(parameter) is not served")
        }
        guard call.route.endpoint.operation == .token else { return }
        if try call.query("kind", as: TokenKind.self) == .idToken { throw denied("an ID token is not served") }
    }

    private final class Refused: Sendable {
        private let uids = Mutex<Set<UInt32>>([])
        func isNew(_ uid: UInt32) -> Bool { uids.withLock { $0.count < 64 && $0.insert(uid).inserted } }
    }

    func session(of name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        let (issuedToken, wanted) = try await issue(try call.sessionQuery(), of: name, call)
        api.noteIssuedToken(call.facts, issuedToken, wanted.key, .token)
        var object = SocketAPI.members(of: issuedToken, isIDToken: false)
        api.addExpiry(of: issuedToken, to: &object)
        return ServerResponse(json: .object(object))
    }

    private func issue(
        _ asked: SessionQuery, of name: AccountName, _ call: Call
    ) async throws(Problem) -> (IssuedToken, SessionQuery) {
        var query = asked
        query.allowance = allowance
        try await refuseAnother(name)
        query.key = try await key(asked.key, of: name, call)
        let wanted = query
        try await refuseWider(wanted, than: name, call)
        let issuedToken = try await ask(call) { () throws(BrokerError) in try await api.broker.session(name, wanted) }
        // Checked again, since the configuration may have changed during the request.
        try await refuseAnother(name)
        guard exposedSocket.permits(issuedToken.token) else { throw denied(whyNotServed(issuedToken.token, of: name)) }
        let excess = wanted.key.scopes.map { self.excess(of: issuedToken.token, beyond: $0) } ?? []
        guard excess.isEmpty else {
            throw denied(
                "the provider of \(name) issued a token with more scope than was requested "
                    + "(\(excess.joined(separator: " "))), so it is not served")
        }
        return (issuedToken, wanted)
    }

    /// What a tool sends to a server, if the origin's account is shown. Another account's origin is as unknown as none.
    func lookup(_ call: Call) async throws(Problem) -> ServerResponse {
        let lookup: OriginLookup
        do throws(Problem) { lookup = try OriginLookup(call, api.daemon.origins) } catch {
            // What an origin allows is not shown either.
            guard [.notFound, .policyDenied].contains(error.code) else { throw error }
            throw denied("no token for this URL is served")
        }
        let origin = lookup.origin
        guard exposedSocket.shows(origin.account.rawValue) else { throw denied("no token for this URL is served") }
        guard origin.kind == .accessToken else { throw denied("an ID token is not served") }
        return try await api.answer(
            lookup, call, mayProve: exposedSocket.serves(.proof),
            explain: { Problem(elsewhere: $0, language: call.language) },
            issue: { () throws(Problem) in try await issue(origin.query, of: origin.account, call) })
    }

    /// The token and a proof. The policy has allowed it.
    func makeProof(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard !call.has("rejected_sha256") else { throw denied("no token is refreshed") }
        let proved = try ProvedRequest(of: call)
        try await refuseAnother(name)
        guard let origin = try await api.origin(of: proved, name, call) else {
            throw denied("no proof for this URL is served")
        }
        let (issuedToken, wanted) = try await issue(SessionQuery(), of: name, call)
        let proof = try await api.proof(of: issuedToken, for: proved) {
            Problem(elsewhere: $0, language: call.language)
        }
        return api.answer(issuedToken, proof, wanted.key, at: origin, call)
    }

    private func whyNotServed(_ token: AccessToken, of name: AccountName) -> String {
        let ceiling = "“\(exposedSocket.ceiling?.joined(separator: " ") ?? "")”"
        guard token.isScopeStated, token.scope?.isEmpty == false else {
            return
                "the provider of \(name) did not state the token's scope. RFC 6749 allows that. Ringback then "
                + "cannot check that the scope is within \(ceiling), so the token is not served"
        }
        let excess = self.excess(of: token, beyond: exposedSocket.ceiling ?? [])
        return
            "the provider of \(name) issued a token for more than \(ceiling): \(excess.joined(separator: " ")). The token "
            + "is not served unless these are added to the socket's scope"
    }

    private func excess(of token: AccessToken, beyond permitted: [String]) -> [String] {
        guard token.isScopeStated else { return [] }
        return TokenDownscoping.excess(
            of: (token.scope ?? "").split(separator: " ").map(String.init), beyond: permitted)
    }

    /// Without a ceiling the session's own token is the limit: a service's provider might give more scopes on request.
    private func refuseWider(_ query: SessionQuery, than name: AccountName, _ call: Call) async throws(Problem) {
        guard exposedSocket.ceiling == nil, let asked = query.key.scopes else { return }
        var own = query
        own.key = .own
        own.minValid = nil
        let issuedToken = try await ask(call) { () throws(BrokerError) in try await api.broker.session(name, own) }
        let scopes = (issuedToken.scope ?? "").split(separator: " ").map(String.init)
        let beyond = asked.filter { !TokenDownscoping.isCovered($0, by: scopes) }
        guard beyond.isEmpty else {
            throw denied("a scope beyond the session's own (\(beyond.joined(separator: " "))) is not served")
        }
    }

    /// The token with the scopes that were asked for, else with those of the ceiling; the session's own if within it.
    private func key(_ key: TokenKey, of name: AccountName, _ call: Call) async throws(Problem) -> TokenKey {
        guard key != .own else {
            guard let ceiling = exposedSocket.ceiling else { return .own }
            if let own = api.broker.snapshot.current(name.rawValue)?.entry.issuedToken.token, exposedSocket.permits(own)
            {
                return .own
            }
            return TokenKey(scopes: await api.broker.reachable(ceiling, of: name))
        }
        guard case .local(let uid, let pid) = call.request.peer,
            policy.decide(
                PolicyPeer(uid: uid, pid: pid), account: name.rawValue,
                operation: call.route.endpoint.operation,
                token: key
            ).isAllowed
        else { throw denied("a scope beyond “\(exposedSocket.ceiling?.joined(separator: " ") ?? "")” is not served") }
        return key
    }
}
