public import HTTPMessages
public import Secrets

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

    /// The request that shows what the server demands of a client without a token. It changes nothing there: it
    /// requests the list of tools, without a session.
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

    /// The request by which a bridge begins, in the newest revision that has it: it shows whether the server accepts a
    /// token. Servers without `initialize` accept or refuse the token all the same.
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
        request.authorization = MCPServer.authorization(accessToken)
        return request
    }

    /// Ends the session that a response to ``initialization(accessToken:)`` began; nil if it began none.
    public func ending(_ response: HTTPResponse, accessToken: Secret) -> HTTPRequest? {
        guard let session = response.fields["Mcp-Session-Id"] else { return nil }
        return HTTPRequest(
            method: "DELETE", url: url.text,
            fields: HTTPFields([("Mcp-Session-Id", session), ("MCP-Protocol-Version", MCPServer.sessionVersion)]),
            authorization: MCPServer.authorization(accessToken),
            limits: HTTPLimits(timeout: .seconds(5), maxBody: 65_536), keepsPartialBody: true)
    }

    private static func authorization(_ token: Secret) -> Secret {
        Secret(bytes: Array("Bearer ".utf8) + token.revealedBytes())
    }

    /// The newest revision with `initialize`.
    private static let sessionVersion = "2025-11-25"

    /// The newest revision of the protocol that is known here.
    static let protocolVersion = "2026-07-28"

    /// The requests for the protected-resource metadata (RFC 9728 section 3), in order: only the URL of the server's
    /// challenge, if it has one; otherwise the location for the server's path, then that for the whole host. Throws
    /// `.invalid` if the challenge names a URL to which no request may be sent.
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
        return places.map { place in
            HTTPRequest(
                url: place, fields: HTTPFields([("Accept", "application/json")]),
                limits: HTTPLimits(maxBody: HTTPRequest.maxResponse))
        }
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
    /// The metadata of a server that publishes none, as revision 2025-03-26 of the Model Context Protocol defines them:
    /// the endpoints have fixed paths below its origin, clients can be registered, and every client uses PKCE.
    ///
    /// Throws `.misconfigured` for an origin that is not https (or http on loopback).
    public init(ofServerWithoutMetadata origin: String) throws(OAuthError) {
        try self.init(
            issuer: origin, authorizationEndpoint: origin + "/authorize", tokenEndpoint: origin + "/token",
            registrationEndpoint: origin + "/register")
        codeChallengeMethods = ["S256"]
    }
}
