public import HTTPMessages
internal import StrictJSON

/// The metadata of a protected resource (RFC 9728 section 2): which authorization servers issue tokens for it.
public struct ProtectedResource: Sendable, Equatable {
    /// The resource's identifier, as stated. It is sent as `resource` (RFC 8707).
    public let resource: String
    /// The issuers, in the order of the document; at least one.
    public let authorizationServers: [String]
    /// Empty if the document lists none.
    public let scopesSupported: [String]

    /// The largest number of authorization servers that is taken from a document.
    private static let mostServers = 20

    /// The metadata for a server that publishes none: it is its own authorization server (MCP revision 2025-03-26).
    public init(ofServerWithout server: MCPServer) {
        resource = server.resource
        authorizationServers = [server.url.origin]
        scopesSupported = []
    }

    /// Reads a document. Throws:
    ///
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
            throw .invalid(
                kind,
                reason: "its resource is “\(CheckedText.description(named) ?? "")”, not \(server.resource)")
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
    }
    /// One text in place of a list is separated by spaces.
    private static func scopes(_ value: JSON?) -> [String] {
        value?.array?.compactMap(\.string) ?? value?.string?.split(separator: " ").map(String.init) ?? []
    }
}
