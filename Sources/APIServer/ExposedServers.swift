internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
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

extension ExposedSocket.MCPAccess {
    /// `tools` and `methods`; without `tools` all of them.
    var json: JSON {
        var object = JSONObject([.init("methods", .array(methods.map { .string($0) }))])
        object["tools"] = tools.map { .array($0.map { .string($0) }) }
        return .object(object)
    }
}
