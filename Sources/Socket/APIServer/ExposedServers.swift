internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import MCPBridge
internal import OAuthSignIn
internal import RingbackAPI
internal import StrictJSON

/// Exposed sockets that serve the MCP server of an account, and no token. `ringback-relay` carries the messages
/// (``MCPBridge/MessageRule``); here a bridge only learns that it is the right account.
extension ExposedAPI {
    /// A socket serves tokens or an MCP server, never both.
    func refuseOtherKind(_ endpoint: Endpoint) throws(Problem) {
        let isForTokens = [.getSession, .getSessionByIssuer, .lookup].contains(endpoint)
        if exposedSocket.order.mcp != nil, isForTokens {
            throw denied("no token is served, only the account's MCP server,")
        }
        if exposedSocket.order.mcp == nil, endpoint == .getMCPServer { throw denied("no MCP server is served") }
    }

    /// Everything that is served to the relay of the socket, at a path that no other program is given: how the server is
    /// reached, a token, and the renewal of one that the server refused. All of it for the socket's account alone.
    static let relayServices: [Endpoint: Service] = [
        .getMCPServer: Service(query: [], handler: ExposedAPI.wholeServer),
        .getSession: Service(query: [], handler: ExposedAPI.getSession),
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
        return ServerResponse(json: [
            "account": .string(name.rawValue), "url": .string(access.url.origin + access.url.path),
            "exposed_socket": .string(exposedSocket.name),
        ])
    }
}

extension Call {
    /// What may be called at the MCP server of an exposed socket; nil without the member `mcp`.
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
    /// `tools` and `methods`; without `tools` all of them.
    var json: JSON {
        var object = JSONObject([.init("methods", .array(methods.map { .string($0) }))])
        object["tools"] = tools.map { .array($0.map { .string($0) }) }
        return .object(object)
    }
}
