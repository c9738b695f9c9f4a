import OAuth
import RingbackBase

/// What an MCP server says of its authorization. The first line of an input is the server's URL, the second one its
/// challenge, the rest its metadata: they lead to no place of this machine, unless the server is there.
enum MCPServerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (address, rest) = bytes.headLineAndRest
        let (field, body) = rest.headLineAndRest
        guard let server = try? MCPServer(parsing: address.isEmpty ? "https://mcp.example/mcp" : address) else {
            return
        }
        let again = try MCPServer(parsing: server.resource)
        try hold("an identifier is canonical", again.resource == server.resource)
        try hold("an identifier is of the same server", again.url.origin == server.url.origin)
        let challenge = BearerChallenge(in: HTTPFields([("WWW-Authenticate", field)]))
        for scope in challenge?.scopes ?? [] {
            try hold("a scope is one word", !scope.isEmpty && scope.utf8.allSatisfy(ScopeList.isCharacter))
        }
        for request in (try? server.metadataRequests(challenge)) ?? [] {
            try check(request.url, namedBy: server)
            let isHome = try WebURL(parsing: request.url).origin == server.url.origin
            try hold("without a challenge the server is asked", challenge?.resourceMetadata != nil || isHome)
        }
        let response = HTTPResponse(status: 200, body: Secret(bytes: body))
        guard let resource = try? ProtectedResource(parsing: response, of: server) else { return }
        try hold("there is an issuer", !resource.authorizationServers.isEmpty)
        try hold("metadata are of the same host", WebURL(parsing: resource.resource).origin == server.url.origin)
        for issuer in resource.authorizationServers {
            try check(issuer, namedBy: server)
            for request in (try? ProviderMetadata.discoveryRequests(issuer: issuer, order: .mcp)) ?? [] {
                let asked = try WebURL(parsing: request.url).origin
                try hold("an issuer's own host is asked", asked == (try WebURL(parsing: issuer)).origin)
            }
        }
    }

    private static func check(_ text: String, namedBy server: MCPServer) throws {
        let url = try WebURL(parsing: text)
        try hold("a place is secure", url.isSecure && url.fragment == nil)
        try hold("a place at home needs a server at home", !url.isLoopback || server.url.isLoopback)
        let last = url.host?.split(separator: ".").last?.utf8.first ?? 0
        let isAddress = url.host?.contains(":") == true || (0x30...0x39).contains(last)
        let isNear = url.host == server.url.host || (url.isLoopback && server.url.isLoopback)
        try hold("an address is the server's own", !isAddress || isNear)
    }
}
