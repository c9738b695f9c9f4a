public import BrokerCore
public import OAuth
public import RingbackBase

/// The configuration of an account at an MCP server. Issuer, client and scopes are found at each sign-in; a service has
/// its issuer and its client from the configuration.
public struct MCPAccount: Sendable {
    public let server: MCPServer
    /// The only issuer whose tokens are accepted; nil for the first one that the server names. A service must name it:
    /// what proves it is sent to no issuer that only the server has named.
    public var issuer: String?
    public var clientMetadataURL: String?
    /// False for a server that refuses the parameter `resource`.
    public var sendsResource = true
    /// False for a server that takes requests without a token.
    public var needsToken = true
    /// The settings for the client and its requests. Their endpoints are replaced by those of the issuer.
    public var rules: OAuthAccount

    public init(server: MCPServer, rules: OAuthAccount) {
        self.server = server
        self.rules = rules
    }
}

extension MCPAccount: AccountKind {
    public func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider {
        guard let grant = rules.grant else { return MCPProvider(account: account, kind: self, tools: tools) }
        let tools = tools.sending(with: PinnedClient(tools.http))
        return ServiceProvider(
            provider: Provider(account, by: rules, tools), grant: grant,
            walk: MCPWalk(account: account, kind: self, tools: tools))
    }

    public var needsSignIn: Bool { needsToken && rules.needsSignIn }

    public var upstream: AccountName? { rules.upstream }

    public func configuredSession(of account: Account, by clock: BrokerClock) -> Session? {
        rules.configuredSession(of: account, by: clock)
    }

    public func bindingID(of account: Account) -> String {
        let binding = binding(of: account)
        return rules.grant?.bindingID(binding, of: account) ?? binding.text
    }

    /// The server, and the issuer and client of the configuration. The issuer and client that a sign-in has found are
    /// stored with its session.
    public func binding(of account: Account) -> SessionBinding {
        let words = [MCPAccount.bindingWord, server.resource] + [issuer].compactMap { $0 }
        return SessionBinding(provider: words.joined(separator: " "), clientID: account.clientID)
    }

    public func issuer(of account: Account) -> String? { issuer }

    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {
        try rules.check(query, of: account)
    }

    public func isUsable(_ setting: UnusableSetting) async -> Bool { await rules.isUsable(setting) }
}

extension MCPAccount {
    fileprivate static let bindingWord = "mcp"

    /// The account that a session's binding describes, without its settings; nil for another kind.
    init?(_ binding: SessionBinding) {
        let words = binding.provider.split(separator: " ").map(String.init)
        guard words.count == 2 || words.count == 3, words[0] == MCPAccount.bindingWord,
            let server = try? MCPServer(parsing: words[1])
        else { return nil }
        self.init(server: server, rules: OAuthAccount(endpoints: .issuer(server.url.origin)))
        issuer = words.count == 3 ? words[2] : nil
    }
}

extension Account {
    /// The account at the issuer of a connection: the same settings, with the client and the scopes that were found.
    func at(_ connection: MCPConnection, of kind: MCPAccount, with tools: ProviderTools) -> Account {
        var account = self
        var rules = kind.rules
        var connection = connection
        // A session from before the setting goes on without the parameter, too.
        if !kind.sendsResource { connection.resource = nil }
        rules.endpoints = .issuer(connection.issuer)
        rules.mcp = connection
        if rules.dpop == .automatic, !connection.takesDPoP { rules.dpop = .off }
        rules.clientAuthentication = connection.authentication ?? rules.clientAuthentication
        account.kind = rules
        account.clientID = connection.clientID
        account.scopes = connection.scopes
        if connection.hasRegisteredSecret {
            account.oauth.clientSecret = .registered(for: account, in: tools.vault, clock: tools.clock)
        }
        return account
    }
}

/// The issuer of the tokens for an MCP server, and the client, as a sign-in found them. All requests of the session use
/// them, even if the server announces another issuer later: a token is never sent to another issuer.
struct MCPConnection: Sendable, Equatable {
    static let name = "mcp"

    let server: MCPServer
    let issuer: String
    /// Empty while it is not chosen yet.
    var clientID = ""
    var authentication: ClientAuthentication?
    /// The vault has a secret that the issuer gave this client.
    var hasRegisteredSecret = false
    var scopes: [String] = []
    /// Sent as `resource` (RFC 8707); nil for a server that refuses the parameter.
    var resource: String?
    /// The network that the MCP server is in.
    let peer: PeerPlace
    /// The server takes tokens that are bound to a key (RFC 9449). Only a sign-in has to know: its session has the key.
    var takesDPoP = false
    /// The server is its own authorization server (MCP revision 2025-03-26), perhaps without metadata.
    var isOwnIssuer = false

    /// True for a host other than the MCP server's, which only documents name. It must not resolve to an address in the
    /// network of this machine, unless the MCP server is there too.
    func isStrange(_ url: String) -> Bool { (try? WebURL(parsing: url))?.host != server.url.host }

    /// True if the server was not on this machine at the sign-in.
    var isOutside: Bool { peer == .elsewhere || peer == .privateNetwork }

    var attachment: SessionAttachment {
        SessionAttachment(facts: [
            "issuer": issuer, "client_id": clientID, "requested_scopes": scopes,
            "has_registered_secret": hasRegisteredSecret, "network": peer.rawValue,
            "token_endpoint_auth_method": authentication?.rawValue, "resource": resource,
            "own_issuer": isOwnIssuer ? true : nil,
        ])
    }
}

extension MCPConnection {
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
        _ request: HTTPRequest, under attempt: RefreshAttempt?, at connection: MCPConnection,
        over http: any HTTPClient
    ) async throws(BrokerError) -> HTTPResponse {
        let isStrange = connection.isStrange(request.url) && connection.peer != .inside
        return try await send(
            request, under: attempt, isStrange: isStrange || connection.isOutside,
            isPublic: isStrange && connection.peer != .privateNetwork, over: http)
    }
}

/// How to reach an account's MCP server with the daemon's settings, for a program that passes its traffic on.
public struct MCPServerAccess: Sendable {
    public let url: WebURL
    public let trust: ServerTrust
    public let route: HTTPRoute
    public let headers: [(String, String)]
    /// At the sign-in the server was on another machine, so its name must not lead to this one.
    public let isOutside: Bool
    public let needsToken: Bool
}

extension Broker {
    /// - Throws: `accountNotFound`; `methodUnsupported` for an account that is not at an MCP server.
    public func mcpServer(_ name: AccountName) async throws(BrokerError) -> MCPServerAccess {
        let account = try await signInContext.sessions.account(name)
        guard let kind = account.kind as? MCPAccount else {
            throw .methodUnsupported(.stated("\(name) is not an account at an MCP server."))
        }
        let sessions = signInContext.sessions
        var held = await sessions.held(name).flatMap { MCPConnection(of: $0, at: kind.server) }
        // A service has asked its server only once it has a token, which is needed next.
        if held == nil, kind.rules.grant != nil {
            _ = try? await session(name, SessionQuery())
            held = await sessions.held(name).flatMap { MCPConnection(of: $0, at: kind.server) }
        }
        return MCPServerAccess(
            url: kind.server.url, trust: account.trust, route: account.route, headers: account.headers,
            isOutside: held?.isOutside ?? false, needsToken: kind.needsToken)
    }
}
