internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import StrictJSON

/// The issuer of the tokens for an MCP server, and the client. They are found at a sign-in and stored with its session.
/// All requests of the session use them, even if the server announces another issuer later. So a token of one issuer is
/// never sent to another one.
struct MCPConnection: Sendable, Equatable {
    /// The name of the session's attachment.
    static let name = "mcp"

    let server: MCPServer
    let issuer: String
    /// Empty while it is not chosen yet.
    var clientID = ""
    /// Nil if the account's settings decide.
    var authentication: ClientAuthentication?
    /// The vault has a secret that the issuer gave this client.
    var hasRegisteredSecret = false
    /// The scopes that were requested.
    var scopes: [String] = []
    /// Sent as `resource` (RFC 8707); nil for a server that refuses the parameter.
    var resource: String?
    /// The network that the MCP server is in.
    let peer: PeerPlace
    /// The server has no protected-resource metadata, so it is its own authorization server (MCP revision 2025-03-26),
    /// perhaps one without metadata.
    var isOwnIssuer = false

    /// True for a host other than the MCP server's, which only documents name. It must not resolve to an address in the
    /// network of this machine, unless the MCP server is there too.
    func isStrange(_ url: String) -> Bool { (try? WebURL(parsing: url))?.host != server.url.host }

    /// True if the server was not on this machine at the sign-in.
    var isOutside: Bool { peer == .elsewhere || peer == .privateNetwork }

    /// What the session keeps.
    var attachment: SessionAttachment {
        var facts = JSONObject([
            .init("issuer", .string(issuer)), .init("client_id", .string(clientID)),
            .init("requested_scopes", .array(scopes.map { .string($0) })),
            .init("has_registered_secret", .bool(hasRegisteredSecret)), .init("network", .string(peer.rawValue)),
        ])
        facts["token_endpoint_auth_method"] = authentication.map { .string($0.rawValue) }
        facts["resource"] = resource.map { .string($0) }
        if isOwnIssuer { facts["own_issuer"] = true }
        return SessionAttachment(facts: facts)
    }
}

extension MCPConnection {
    /// The connection of a session; nil for a session of another kind of account.
    init?(of session: Session, at server: MCPServer) {
        guard let facts = session.attachments[MCPConnection.name]?.facts, let issuer = facts["issuer"]?.string,
            let clientID = facts["client_id"]?.string
        else { return nil }
        self.init(
            server: server, issuer: issuer, clientID: clientID,
            authentication: facts["token_endpoint_auth_method"]?.string.flatMap { ClientAuthentication(rawValue: $0) },
            hasRegisteredSecret: facts["has_registered_secret"]?.bool ?? false,
            scopes: (facts["requested_scopes"]?.array ?? []).compactMap(\.string), resource: facts["resource"]?.string,
            peer: facts["network"]?.string.flatMap { PeerPlace(rawValue: $0) } ?? .unknown,
            isOwnIssuer: facts["own_issuer"]?.bool ?? false)
    }
}

extension Account {
    /// Sends a request to a host that a document of an MCP server, or of its issuer, names. A server that was not on this
    /// machine at the sign-in is not here later: its own host must not resolve to this machine either.
    func send(
        _ request: HTTPRequest, under attempt: RefreshAttempt? = nil, at connection: MCPConnection,
        over http: any HTTPClient
    ) async throws(BrokerError) -> HTTPResponse {
        let isStrange = connection.isStrange(request.url) && connection.peer != .inside
        return try await send(
            request, under: attempt, isStrange: isStrange || connection.isOutside,
            isPublic: isStrange && connection.peer != .privateNetwork, over: http)
    }
}
