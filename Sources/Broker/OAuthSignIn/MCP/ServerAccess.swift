public import BrokerCore
public import HTTPMessages
internal import OAuth

/// How to reach an account's MCP server, for a program that passes its traffic on: with the same settings as the
/// daemon.
public struct MCPServerAccess: Sendable {
    public let url: WebURL
    public let trust: ServerTrust
    public let route: HTTPRoute
    /// Added to every request.
    public let headers: [(String, String)]
    /// At the sign-in the server was on another machine, so its name must not lead to this one.
    public let isOutside: Bool
    /// False if requests have no token.
    public let needsSignIn: Bool
}

extension Broker {
    /// The MCP server of an account.
    ///
    /// - Throws: `accountNotFound`; `methodUnsupported` for an account that is not at an MCP server.
    public func mcpServer(_ name: AccountName) async throws(BrokerError) -> MCPServerAccess {
        let account = try await signInContext.sessions.account(name)
        guard let kind = account.kind as? MCPAccount else { throw .methodUnsupported(.oauth(.notMCP(name))) }
        let held = await signInContext.sessions.held(name).flatMap { MCPConnection(of: $0, at: kind.server) }
        return MCPServerAccess(
            url: kind.server.url, trust: account.trust, route: account.route, headers: account.headers,
            isOutside: held?.isOutside ?? false, needsSignIn: kind.needsSignIn)
    }
}
