internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import Synchronization

struct MCPAnnouncement: Sendable {
    /// The connection, still without a client.
    let connection: MCPConnection
    let metadata: ProviderMetadata
    /// The scopes of the challenge; without any, all that the server's metadata list.
    let scopes: [String]
    let scopesSupported: [String]

    /// The scopes of a sign-in that states none. `offline_access` is added if the issuer supports it: without it there
    /// would be no refresh token. It is left out if the issuer lists its scopes without it: some issuers reject it then.
    var usualScopes: [String] {
        guard let listed = metadata.scopesSupported else { return scopes }
        return listed.contains("offline_access")
            ? ScopeList.union(scopes, ["offline_access"]) : scopes.filter { $0 != "offline_access" }
    }
}

/// Asks an MCP server who issues its tokens: the challenge, the protected-resource metadata (RFC 9728), the issuer's
/// metadata. Nothing is cached: a server may change its issuer.
struct MCPWalk: Sendable {
    let account: Account
    let kind: MCPAccount
    let tools: ProviderTools

    private var server: MCPServer { kind.server }
    private var directory: ProviderDirectory { tools.memory() }

    func announcement() async throws(BrokerError) -> MCPAnnouncement {
        let response = try await account.send(server.probe(), over: tools.http)
        return try await announcement(after: response)
    }

    /// - Parameter response: the server's response to ``MCPServer/probe()``.
    func announcement(after response: HTTPResponse) async throws(BrokerError) -> MCPAnnouncement {
        let dpop = BearerChallenge(in: response.fields, of: "dpop")
        let challenge = BearerChallenge(in: response.fields) ?? dpop
        let peer = server.url.isLoopback ? PeerPlace.inside : response.peer
        let published = try await protectedResource(challenge, peer)
        if published == nil, challenge == nil, response.isOfOpenServer {
            throw .misconfigured(.oauth(.mcpNeedsNoSignIn(account.name, host: server.url.place)))
        }
        let resource = published ?? ProtectedResource(ofServerWithout: server)
        let issuer = try chooseIssuer(of: resource)
        var connection = MCPConnection(
            server: server, issuer: issuer, resource: kind.sendsResource ? resource.resource : nil, peer: peer)
        connection.isOwnIssuer = published == nil
        connection.takesDPoP = dpop != nil || resource.takesDPoP
        let metadata = try await directory.metadata(
            of: account.at(connection, of: kind, with: tools), issuer: issuer, over: tools.http)
        let stated = challenge?.scopes ?? []
        return MCPAnnouncement(
            connection: connection, metadata: metadata, scopes: stated.isEmpty ? resource.scopesSupported : stated,
            scopesSupported: resource.scopesSupported)
    }

    /// Throws if no user can sign in at the issuer.
    func check(_ announcement: MCPAnnouncement) throws(BrokerError) {
        guard !announcement.metadata.announcesPKCE else { return }
        let text =
            "\(account.name) cannot sign in at \(announcement.connection.issuer), which its MCP server names: its metadata do "
            + "not say that it supports S256 (PKCE), which MCP requires."
        throw .misconfigured(.stated(text))
    }

    private func protectedResource(
        _ challenge: BearerChallenge?, _ peer: PeerPlace
    ) async throws(BrokerError) -> ProtectedResource? {
        let host = server.url.place
        let requests = try BrokerError.reading(from: host, try server.metadataRequests(challenge))
        let unknown = MCPConnection(server: server, issuer: "", resource: nil, peer: peer)
        for request in requests {
            let response = try await account.send(request, under: nil, at: unknown, over: tools.http)
            if response.isAbsent, challenge?.resourceMetadata == nil { continue }
            return try BrokerError.reading(from: request.host, try ProtectedResource(parsing: response, of: server))
        }
        return nil
    }

    private func chooseIssuer(of resource: ProtectedResource) throws(BrokerError) -> String {
        guard let wanted = kind.issuer else { return resource.authorizationServers[0] }
        guard resource.authorizationServers.contains(where: { $0 == wanted }) else {
            let announced = resource.authorizationServers[0]
            throw .misconfigured(.oauth(.mcpOtherIssuer(account.name, configured: wanted, announced: announced)))
        }
        return wanted
    }
}

/// For a service, whose issuer and client are those of the configuration.
extension MCPWalk {
    /// The provider with what the server announces now.
    func provider() async throws(BrokerError) -> Provider {
        guard kind.issuer != nil else {
            throw .unusableSetting(UnusableSetting(.oauth(.mcpNeedsIssuer(account.name)), setting: "issuer"))
        }
        let announcement = try await announcement()
        var connection = announcement.connection
        connection.clientID = account.clientID
        // There is no refresh token.
        connection.scopes =
            account.scopes.isEmpty ? announcement.scopes.filter { $0 != "offline_access" } : account.scopes
        return provider(at: connection)
    }

    /// The provider with what the server announced when the session got its last token; nil before the first one.
    func provider(of session: Session) -> Provider? {
        MCPConnection(of: session, at: server).map(provider)
    }

    private func provider(at connection: MCPConnection) -> Provider {
        let account = account.at(connection, of: kind, with: tools)
        return Provider(account, by: account.oauth, tools)
    }
}

extension HTTPResponse {
    /// True for the response of an MCP server to ``MCPServer/probe()`` if it takes requests without a token. A server of an
    /// older revision refuses this one with 400 and a JSON-RPC error: it has no session yet.
    var isOfOpenServer: Bool {
        let type = fields["content-type"]?.lowercased() ?? ""
        if status == 200 { return type.hasPrefix("application/json") || type.hasPrefix("text/event-stream") }
        return status == 400 && (try? JSON(parsing: body.revealedBytes()))?["jsonrpc"]?.string == "2.0"
    }

    /// True if there is no document. Some servers respond with 401 or 405 to every location that they do not know.
    var isAbsent: Bool { (400..<500).contains(status) && ![408, 425, 429].contains(status) }
}

/// Resolves each host once, for one walk. Attack (DNS rebinding): the name of a host that only documents name, or of
/// the MCP server, resolves to an address of the Internet at first, and to one inside the network afterwards.
final class PinnedClient: HTTPClient {
    private let http: any HTTPClient
    private let addresses = Mutex<[String: String]>([:])

    init(_ http: any HTTPClient) { self.http = http }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        guard let host = try? WebURL(parsing: request.url).host else { return try await http.send(request) }
        var request = request
        request.address = addresses.withLock { $0[host] }
        let response = try await http.send(request)
        if let address = response.address { addresses.withLock { $0[host] = $0[host] ?? address } }
        return response
    }
}
