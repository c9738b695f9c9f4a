public import RingbackBase

/// An MCP server that takes access tokens (Model Context Protocol, Authorization), by its URL. Everything else about a
/// sign-in is found by asking it.
public struct MCPServer: Sendable, Equatable {
    public let url: WebURL

    /// The canonical URI of the server (RFC 8707 section 2): scheme and host in lower case, without the scheme's own
    /// port, and without a slash that is the whole path.
    public var resource: String {
        url.origin + (url.path == "/" ? "" : url.path) + (url.query.map { "?\($0)" } ?? "")
    }

    /// Throws `.misconfigured` for a URL that is not https (or http on loopback), or has a fragment.
    public init(parsing text: String) throws(OAuthError) {
        guard let url = EndpointRule.url(text) else {
            throw .misconfigured(
                reason: "the MCP server's URL is not an https URL (or http on loopback) without a fragment")
        }
        self.url = url
    }

    /// The request that shows what the server demands of a client without a token: the list of tools, without a
    /// session.
    public func probe() -> HTTPRequest {
        let version = MCPServer.protocolVersion
        let body = """
            {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":\
            {"io.modelcontextprotocol/protocolVersion":"\(version)",\
            "io.modelcontextprotocol/clientInfo":{"name":"ringback","version":"1"},\
            "io.modelcontextprotocol/clientCapabilities":{}}}}
            """
        return HTTPRequest(
            method: "POST", url: url.text,
            fields: HTTPFields([
                ("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json"),
                ("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list"),
            ]), body: Secret(body), limits: HTTPLimits(timeout: .seconds(10), maxBody: 65_536),
            // A server without authorization may respond with a stream that does not end.
            keepsPartialBody: true)
    }

    /// The request by which a bridge begins: it shows whether the server accepts a token. Servers without `initialize`
    /// accept or refuse the token all the same.
    public func initialization(accessToken: Secret) -> HTTPRequest {
        let body = """
            {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"\(MCPServer.sessionVersion)",\
            "capabilities":{},"clientInfo":{"name":"ringback","version":"1"}}}
            """
        var request = probe()
        request.fields = HTTPFields([
            ("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json"),
        ])
        request.body = Secret(body)
        request.authorization = .bearer(accessToken)
        return request
    }

    /// Ends the session that a response to ``initialization(accessToken:)`` began; nil if it began none.
    public func ending(_ response: HTTPResponse, accessToken: Secret) -> HTTPRequest? {
        guard let session = response.fields["Mcp-Session-Id"] else { return nil }
        return HTTPRequest(
            method: "DELETE", url: url.text,
            fields: HTTPFields([("Mcp-Session-Id", session), ("MCP-Protocol-Version", MCPServer.sessionVersion)]),
            authorization: .bearer(accessToken),
            limits: HTTPLimits(timeout: .seconds(5), maxBody: 65_536), keepsPartialBody: true)
    }

    /// The newest revision of the protocol with `initialize`.
    private static let sessionVersion = "2025-11-25"
    /// The newest revision of the protocol.
    static let protocolVersion = "2026-07-28"

    /// The requests for the protected-resource metadata (RFC 9728 section 3), in order: only the URL of the challenge,
    /// if it has one; else the location for the server's path, then that for the whole host. Throws `.invalid` if the
    /// challenge names a URL to which no request may be sent.
    public func metadataRequests(_ challenge: BearerChallenge?) throws(OAuthError) -> [HTTPRequest] {
        var places = [url.origin + MCPServer.wellKnown]
        if let stated = challenge?.resourceMetadata {
            guard let place = EndpointRule.url(stated), EndpointRule.allows(place, of: url) else {
                throw .invalid(
                    .protectedResource, reason: "resource_metadata of the challenge is not a URL that may be requested")
            }
            places = [place.text]
        } else if resource != url.origin {
            places.insert(
                url.origin + MCPServer.wellKnown + (url.path == "/" ? "" : url.path)
                    + (url.query.map { "?\($0)" } ?? ""),
                at: 0)
        }
        return places.map { .document(at: $0) }
    }

    private static let wellKnown = "/.well-known/oauth-protected-resource"

    /// True if metadata with this `resource` identifier may describe the server: it has the same origin, and a path
    /// that is the server's or one above it, with the same query or none.
    func isCovered(by identifier: WebURL) -> Bool {
        guard identifier.origin == url.origin, identifier.fragment == nil,
            identifier.query == nil || identifier.query == url.query
        else { return false }
        let segments = { (path: String) in path.split(separator: "/", omittingEmptySubsequences: false).dropFirst() }
        var above = Array(segments(identifier.path))
        if above.last == "" { above.removeLast() }
        return segments(url.path).starts(with: above)
    }
}

extension ProviderMetadata {
    /// The metadata of a server that publishes none (Model Context Protocol, revision 2025-03-26): the endpoints have
    /// fixed paths, clients can be registered, and every client uses PKCE. Throws `.misconfigured` for an origin that
    /// is not https (or http on loopback).
    public init(ofServerWithoutMetadata origin: String) throws(OAuthError) {
        try self.init(
            issuer: origin, authorizationEndpoint: origin + "/authorize", tokenEndpoint: origin + "/token",
            registrationEndpoint: origin + "/register")
        codeChallengeMethods = ["S256"]
    }
}

/// The metadata of a protected resource (RFC 9728 section 2): which authorization servers issue tokens for it.
public struct ProtectedResource: Sendable, Equatable {
    /// The resource's identifier, as stated. It is sent as `resource` (RFC 8707).
    public let resource: String
    /// The issuers, in the order of the document; at least one.
    public let authorizationServers: [String]
    /// Empty if the document lists none.
    public let scopesSupported: [String]
    /// The server takes tokens that are bound to a ``DPoPKey``.
    public let takesDPoP: Bool
    /// The most authorization servers that are taken from a document.
    private static let mostServers = 20

    /// The metadata for a server that publishes none: it is its own authorization server (MCP revision 2025-03-26).
    public init(ofServerWithout server: MCPServer) {
        resource = server.resource
        authorizationServers = [server.url.origin]
        scopesSupported = []
        takesDPoP = false
    }

    /// Reads a document. Throws:
    /// - `.unavailable`: status 408, 425, 429 or 5xx.
    /// - `.invalid`: another status than 200, no JSON object, the identifier of another server, or no authorization
    ///   server to which requests may be sent. One with an IP address is allowed only if the MCP server is at the same
    ///   address (attack: a server on the Internet names an internal one).
    public init(parsing response: HTTPResponse, of server: MCPServer) throws(OAuthError) {
        let kind = OAuthError.Response.protectedResource
        try ResponseReader.checkStatus(response, of: kind)
        guard response.status == 200 else { throw .invalid(kind, reason: "HTTP \(response.status)") }
        let object = try ResponseReader.object(in: response, of: kind)
        guard let named = object["resource"]?.string else { throw .invalid(kind, reason: "no resource") }
        guard let identifier = EndpointRule.url(named), server.isCovered(by: identifier) else {
            let words = CheckedText.description(named) ?? ""
            throw .invalid(kind, reason: "its resource is “\(words)”, not \(server.resource)")
        }
        let stated = object["authorization_servers"]
        // Some servers send one issuer in place of a list.
        let listed = (stated?.array ?? stated.map { [$0] } ?? []).compactMap(\.string)
        guard !listed.isEmpty else { throw .invalid(kind, reason: "no authorization_servers") }
        let allowed = listed.prefix(ProtectedResource.mostServers).filter { issuer in
            guard let url = EndpointRule.url(issuer), url.query == nil else { return false }
            return EndpointRule.allows(url, of: server.url)
        }
        guard !allowed.isEmpty else {
            throw .invalid(
                kind,
                reason: "no authorization server with an https URL (a local or IP address must be the MCP server's)")
        }
        resource = named
        authorizationServers = allowed
        scopesSupported = ScopeList.taking(ProtectedResource.scopes(object["scopes_supported"]))
        takesDPoP =
            object["dpop_bound_access_tokens_required"]?.bool == true
            || object["dpop_signing_alg_values_supported"]?.array?.contains("ES256") == true
    }

    /// One text in place of a list is separated by spaces.
    private static func scopes(_ value: JSON?) -> [String] {
        value?.array?.compactMap(\.string) ?? value?.string?.split(separator: " ").map(String.init) ?? []
    }
}

/// A client id that is the URL of a document about the client, which `ringback client-metadata` prints.
public enum ClientMetadataDocument {
    /// The redirect URI that all accounts share whose client id is such a document. The document has it without a port.
    public static let redirectURI = "http://127.0.0.1:{port}/callback"

    /// Throws `.misconfigured` unless it is an https URL with a path and without a fragment.
    public static func check(_ url: String) throws(OAuthError) {
        guard let parsed = try? WebURL(parsing: url), parsed.scheme == "https", parsed.fragment == nil,
            parsed.path.utf8.count > 1
        else {
            throw .misconfigured(reason: "must be an https URL with a path and without a fragment")
        }
    }
}
