public import BrokerCore
internal import LocalHTTP
internal import MCPBridge
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseSignIn

/// Exposed sockets, made and ended on the daemon's own socket. The daemon decides where one is: no member is a path.
struct ExposedSocketResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listExposedSockets, "Every restricted socket, by name, and those that are closed",
            .json(
                "ExposedSockets", .required("exposed_sockets", as: .array(.component(.exposedSocket))),
                .required("closed", as: .array(.component(.closedSocket)))),
            errors: [.notFound], ExposedSocketResource.listExposedSockets),
        Route(
            .createExposedSocket, "Show accounts through a restricted socket", query: [ConsentQuery.member],
            body: members, statuses: [201], .json(.exposedSocket),
            errors: [
                .validationFailed, .accountNotFound, .stateConflict, .invalidConfiguration, .notFound, .consentRequired,
                .consentTimeout,
            ],
            ExposedSocketResource.createExposedSocket),
        Route(
            .getExposedSocket, "A restricted socket; id or name", .json(.exposedSocket), errors: [.notFound],
            ExposedSocketResource.getExposedSocket),
        Route(
            .revokeExposedSocket, "End a restricted socket and its connections; id or name", .json(.exposedSocket),
            errors: [.notFound, .stateConflict], ExposedSocketResource.revokeExposedSocket),
    ]

    /// Seconds that a restricted socket may be open.
    private static let lifetimes = 1...ExposedSocket.Order.longestLifetime.wholeSeconds

    private static let members: [Member] = .members(
        .required("name", as: .pattern("^[a-z0-9][a-z0-9._-]{0,63}$")), .optional("accounts", as: .array(.string)),
        .optional("account", text: "One more account"),
        .optional("scope", text: "The scopes that a token may have at most; separated by spaces"),
        .optional("ttl", as: .range(lifetimes), text: "Seconds"),
        .optional("until", as: .pattern("^disconnect$"), text: "disconnect: it ends with the connection that made it"),
        .optional(
            "nested", as: .boolean,
            text: "With until: for a confined program that may make sandboxes of its own, as the audit log says then"),
        .optional("proof", as: .boolean, text: "Give proofs for requests with tokens that are bound to a key, too"),
        .optional("allow_uids", as: .array(.integer), text: "Other users who may connect"),
        .optional("flatpak", text: "A Flatpak app's id: the socket is also made in its directory"),
        .optional(
            "mcp", as: .object([.optional("methods", .array(.string)), .optional("tools", .array(.string))]),
            text:
                "Serve the MCP server of the account, and no token: what may be called there; without tools all of them"
        ))

    /// How long a call waits for the user's consent. Clients wait half a minute for a response.
    private static let consentWait: Duration = .seconds(25)

    func listExposedSockets(_ call: Call) async throws(Problem) -> ServerResponse {
        let registry = try exposedSockets()
        var shown: [JSONObject] = []
        for exposedSocket in await registry.all { shown.append(await json(of: exposedSocket)) }
        return ServerResponse(["exposed_sockets": shown, "closed": await registry.missing.map(closed)])
    }

    func getExposedSocket(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let found = try await exposedSockets().find(call["id"]) else {
            throw Problem(.notFound, "Nothing is exposed under this name.")
        }
        return ServerResponse(await json(of: found))
    }

    func createExposedSocket(_ call: Call) async throws(Problem) -> ServerResponse {
        let order = try await order(of: call)
        let registry = try exposedSockets()
        var left = ExposedSocketResource.consentWait
        for account in order.accounts {
            left = try await api.consent(to: .exposedSocket, of: account, scope: order.ceiling, call, within: left)
        }
        let made = try await call.ask { () throws(BrokerError) in try await registry.add(order) }
        if order.isTransient {
            // By its id: the name may be another socket's by then.
            call.request.memory.atEnd { [broker] in broker.inBackground { _ = try? await registry.revoke(made.id) } }
        }
        return ServerResponse(status: 201, await json(of: made))
    }

    func revokeExposedSocket(_ call: Call) async throws(Problem) -> ServerResponse {
        let registry = try exposedSockets()
        let ended = try await call.ask { () throws(BrokerError) in try await registry.revoke(call["id"]) }
        return ServerResponse(await json(of: ended))
    }

    private func exposedSockets() throws(Problem) -> ExposedSocketRegistry {
        guard let registry = daemon.exposedSockets else {
            throw Problem(.notFound, "This daemon has no restricted sockets.")
        }
        return registry
    }

    private func order(of call: Call) async throws(Problem) -> ExposedSocket.Order {
        // If null meant that a member is left out, a limit could be lost by mistake.
        for name in call.wholeBody.names where call.wholeBody[name] == .null {
            throw call.invalid(name, "must not be null; leave it out for no limit")
        }
        let name = try call.required("name")
        var words = try call.list("accounts") { $0.string }
        if let one = try call.text("account") { words.append(one) }
        var accounts: [AccountName] = []
        for word in words {
            guard let account = AccountName(word) else {
                throw Problem(.accountNotFound, "There is no account of this name.")
            }
            let view = try await call.ask { () throws(BrokerError) in try await broker.account(account) }
            accounts.append(view.name)
        }
        let scope = try call.text("scope").map { $0.split(separator: " ").map(String.init) }
        var order = ExposedSocket.Order(
            name: name, accounts: accounts, ceiling: scope,
            allowedUIDs: try call.list("allow_uids") { $0.integer.flatMap { UInt32(exactly: $0) } },
            flatpak: try call.text("flatpak"),
            lifetime: try call.number("ttl", in: ExposedSocketResource.lifetimes).map { .seconds($0) },
            mcp: try call.mcpAccess())
        if let until = try call.text("until") {
            guard until == "disconnect" else { throw call.invalid("until", "it is “disconnect”, or left out") }
            order.isTransient = true
        }
        order.givesProofs = try call.truth("proof")
        order.isForNested = try call.truth("nested")
        guard order.isTransient || !order.isForNested else { throw call.invalid("nested", "it belongs to until") }
        if let mistake = order.mistake { throw call.invalid(mistake.member, mistake.reason) }
        try await refuseCeilingless(order, call)
        try await refuseWithoutServer(order, call)
        return order
    }

    private func refuseWithoutServer(_ order: ExposedSocket.Order, _ call: Call) async throws(Problem) {
        guard order.mcp != nil, let account = order.accounts.first else { return }
        guard (try? await broker.mcpServer(account)) != nil else {
            throw call.invalid("mcp", "\(account) is not at an MCP server")
        }
    }

    /// The tokens of a Supabase project have no scopes: with a ceiling no token would be served.
    private func refuseCeilingless(_ order: ExposedSocket.Order, _ call: Call) async throws(Problem) {
        guard order.ceiling != nil else { return }
        for account in order.accounts {
            let isProject = try await call.ask { () throws(BrokerError) in try await broker.supabase.isProject(account)
            }
            guard !isProject else {
                throw call.invalid(
                    "scope", "\(account) is at a Supabase project, which has no downscoped tokens; leave the scope out")
            }
        }
    }

    /// An exposed socket as JSON. `socket` is where the daemon listens, `directory` what to mount into a container.
    private func json(of exposedSocket: ExposedSocket) async -> JSONObject {
        let order = exposedSocket.order
        let expiry = exposedSocket.expiry.map { broker.instant(of: $0) }
        let remarks = await broker.remarks(on: order)
        let place = daemon.exposedAt(exposedSocket)
        return [
            "id": exposedSocket.id, "name": order.name, "accounts": order.accounts.map(\.rawValue),
            "scope": order.ceiling?.joined(separator: " "), "allow_uids": order.allowedUIDs.map { Int($0) },
            "flatpak": order.flatpak, "proof": order.givesProofs ? true : nil, "mcp": order.mcp?.json,
            "created_at": exposedSocket.createdAt.seconds,
            "expires_at": expiry?.at.seconds, "expires_in": expiry?.remaining.wholeSeconds,
            "until": order.isTransient ? "disconnect" : nil, "nested": order.isForNested ? true : nil,
            "source": ExposedSocketResource.source(of: exposedSocket), "notes": remarks.isEmpty ? nil : remarks,
            "socket": place?.socket, "directory": place?.directory, "flatpak_socket": place?.flatpakSocket,
        ]
    }

    /// A socket that is closed although the user may expect it to be open.
    private func closed(_ closed: ClosedSocket) -> JSONObject {
        [
            "name": closed.name, "source": ExposedSocketResource.source(of: closed.exposedSocket),
            "accounts": closed.exposedSocket.accounts.map(\.rawValue), "reason": closed.reason.rawValue,
            "detail": closed.detail.sentence, "path": closed.unsafePath,
        ]
    }

    private static func source(of exposedSocket: ExposedSocket) -> String {
        switch exposedSocket.origin {
        case .call: "api"
        case .configuration(let place): place
        }
    }
}

public struct ExposedPlace: Sendable, Equatable {
    /// `…/exposed/NAME.sock`
    public var socket: String
    /// A directory that holds nothing but another socket of the same server.
    public var directory: String
    /// In the directory that a Flatpak app sees.
    public var flatpakSocket: String?

    public init(socket: String, directory: String, flatpakSocket: String?) {
        self.socket = socket
        self.directory = directory
        self.flatpakSocket = flatpakSocket
    }
}

extension Component {
    fileprivate static let closedSocket = Component(
        "ClosedExposedSocket", .required("name", "source", "detail"), .required("accounts", as: .array(.string)),
        .required("reason", as: .oneOf(ClosedSocket.Reason.self)), .optional("path"))
    fileprivate static let exposedSocket = Component(
        "ExposedSocket", .required("id", "name", "source"), .required("accounts", as: .array(.string)),
        .optional("scope", "flatpak", "until", "socket", "directory", "flatpak_socket"),
        .required("allow_uids", as: .array(.integer)), .required("created_at", as: .integer),
        .optional("nested", "proof", as: .boolean), .optional("expires_at", "expires_in", as: .integer),
        .optional("notes", as: .array(.string)),
        .optional(
            "mcp", as: .object([.required("methods", .array(.string)), .optional("tools", .array(.string))]),
            text: "It serves the account's MCP server, and no token"))
}

/// Restricted sockets in the audit log. Tokens that they issue have entries of their own.
extension RecordKeeper {
    @Sendable public func note(_ fact: ExposedSocketRegistry.Fact) {
        switch fact {
        case .opened(let exposedSocket): write("exposed_socket_opened", exposedSocket.name, of: exposedSocket)
        case .closed(let exposedSocket, let ending):
            write("exposed_socket_closed", exposedSocket.name, reason: ending.rawValue)
        case .failed(let name, let reason): write("exposed_socket_failed", name, reason: reason.sentence)
        case .damaged(let reason): write("exposed_sockets_damaged", nil, reason: reason.sentence)
        }
    }

    public func noteRefused(uid: UInt32, at exposedSocket: ExposedSocket) {
        audit.write(
            "exposed_socket_refused", ["exposed_socket": exposedSocket.name, "uid": Int(uid)], at: exposedSocket.name)
    }

    /// A message that was not sent to the MCP server. Equal ones are counted together. `method` and `tool` are foreign.
    @Sendable public func noteDenied(
        method: String, tool: String?, reason: String, uid: Int?, pid: Int?, at exposedSocket: ExposedSocket
    ) {
        writeCounted(
            "mcp_message_denied", common: ["uid": uid],
            [
                "pid": pid, "method": RecordKeeper.bounded(method), "tool": tool.map(RecordKeeper.bounded),
                "reason": RecordKeeper.bounded(reason),
            ], at: exposedSocket)
    }

    @Sendable public func noteWithheld(reason: String, at exposedSocket: ExposedSocket) {
        writeCounted("mcp_message_withheld", ["reason": RecordKeeper.bounded(reason)], at: exposedSocket)
    }

    private func writeCounted(
        _ event: String, common: JSONObject = [:], _ members: JSONObject, at exposedSocket: ExposedSocket
    ) {
        var shared: JSONObject = [
            "exposed_socket": exposedSocket.name, "account": exposedSocket.accounts.first?.rawValue,
        ]
        shared.members += common.members
        audit.writeCounted(
            event, JSONObject(shared.members + members.members), common: shared, at: exposedSocket.name)
    }

    private func write(_ event: String, _ name: String?, reason: String? = nil, of exposedSocket: ExposedSocket? = nil)
    {
        let order = exposedSocket?.order
        let uids = order.map { $0.allowedUIDs.map { Int($0) } } ?? []
        audit.write(
            event,
            [
                "exposed_socket": name, "reason": reason.map(RecordKeeper.bounded),
                "accounts": order?.accounts.map(\.rawValue), "scope": order?.ceiling?.joined(separator: " "),
                "allow_uids": uids.isEmpty ? nil : uids, "flatpak": order?.flatpak, "tools": order?.mcp?.tools,
                "methods": order?.mcp?.methods, "proof": order?.givesProofs == true ? true : nil,
                "nested": order?.isForNested == true ? true : nil,
                "expires_at": exposedSocket?.expiry?.at.seconds,
            ])
    }
}

/// Exposed sockets that serve an MCP server, and no token. `ringback-relay` carries the messages (``MessageRule``).
extension ExposedAPI {
    /// A socket serves tokens or an MCP server, never both.
    func refuseOtherKind(_ endpoint: Endpoint) throws(Problem) {
        let isForTokens = [.getSession, .getSessionByIssuer, .lookup, .makeProof].contains(endpoint)
        if exposedSocket.order.mcp != nil, isForTokens {
            throw denied("no token is served, only the account's MCP server,")
        }
        if exposedSocket.order.mcp == nil, endpoint == .getMCPServer { throw denied("no MCP server is served") }
    }

    /// What is served to the relay of the socket alone: how the server is reached, a token, its proofs, its renewal once
    /// refused.
    static let relayServices: [Endpoint: Service] = [
        .getMCPServer: Service(query: [], handler: ExposedAPI.wholeServer),
        .getSession: Service(query: [], handler: ExposedAPI.getSession),
        .makeProof: Service(query: [], handler: ExposedAPI.makeProof),
        .refresh: Service(query: [], handler: ExposedAPI.refreshRefused),
    ]

    private func wholeServer(_ call: Call) async throws(Problem) -> ServerResponse {
        try await refuseAnother(try call.account())
        return try await MCPServerResource(api: api).getMCPServer(call)
    }

    private func refreshRefused(_ call: Call) async throws(Problem) -> ServerResponse {
        try await refuseAnother(try call.account())
        guard try call.digest("rejected_sha256") != nil, try !call.truth("force") else {
            throw denied("a token is refreshed only after the server has refused it")
        }
        return try await SessionResource(api: api).refresh(call)
    }

    /// Where the server is: no certificate, header or proxy, which may hold secrets.
    func mcpServer(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        try await refuseAnother(name)
        let access = try await ask(call) { () throws(BrokerError) in try await api.broker.mcpServer(name) }
        return ServerResponse([
            "account": name.rawValue, "url": access.url.origin + access.url.path, "exposed_socket": exposedSocket.name,
        ])
    }
}

extension Call {
    func mcpAccess() throws(Problem) -> ExposedSocket.MCPAccess? {
        guard let members = try object("mcp") else { return nil }
        if let stranger = members.names.first(where: { !["methods", "tools"].contains($0) }) {
            throw invalid("mcp.\(Call.shown(stranger))", "this request has no such member")
        }
        let tools = try texts("tools", in: members)
        if let tools, !tools.allSatisfy(MessageRule.isToolName) {
            throw invalid("mcp.tools", "must be names of tools, without control characters")
        }
        let methods = try texts("methods", in: members)
        if let stranger = methods?.first(where: { !MessageRule.known.contains($0) }) {
            let nearest = NearestWord.find(for: stranger, among: MessageRule.known).map { " (the nearest is \($0))" }
            throw invalid("mcp.methods", "one of them is no method that a client may call\(nearest ?? "")")
        }
        let rule = MessageRule(tools: tools, methods: methods)
        return ExposedSocket.MCPAccess(tools: rule.tools, methods: rule.methods)
    }

    /// If null meant that a list is left out, a limit could be lost by mistake.
    private func texts(_ name: String, in members: JSONObject) throws(Problem) -> [String]? {
        guard let value = members[name] else { return nil }
        let texts = value.array?.compactMap(\.string)
        guard let texts, texts.count == value.array?.count, texts.count <= 256 else {
            throw invalid("mcp.\(name)", "must be an array of strings, 256 at most")
        }
        return texts
    }
}

extension ExposedSocket.MCPAccess {
    var json: JSONObject { ["methods": methods, "tools": tools] }
}
