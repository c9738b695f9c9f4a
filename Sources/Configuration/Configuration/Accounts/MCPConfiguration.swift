public import OAuth

public struct MCPConfiguration: Sendable, Equatable {
    public let server: MCPServer
    /// The only issuer whose tokens are taken; nil for the first one that the server names. Never nil for a service.
    public let issuer: String?
    /// The client-id metadata document.
    public let clientMetadataURL: String?
    /// The parameter `resource`.
    public let sendsResource: Bool
    /// False if the server takes requests without a token.
    public let needsSignIn: Bool
}

struct MCPReader {
    static let keys = ["client_id_metadata_url", "resource_parameter", "sign_in", "through"]

    /// Keys that name a provider or a client in another way.
    private static let foreignKeys = [
        "provider", "endpoints", "client_secret_registered", "authorization_response_iss",
        "offline_access_consent",
    ]

    let table: SettingTable

    /// Nil if there is an error.
    func read(_ url: String) -> AccountProvider? {
        let before = table.check.errors.count
        for key in MCPReader.foreignKeys where table.isWritten(key) {
            table.refuse(key, "cannot be combined with mcp")
        }
        if table.isWritten("grant"), table.isWritten("through") {
            table.refuse("through", "cannot be combined with grant")
        }
        if let serviceKey = table.serviceKey {
            for key in ["client_id_metadata_url", "sign_in"] where table.isWritten(key) {
                table.refuse(key, "is for sign-ins, not for \(serviceKey)")
            }
            if table.isWritten("resource") { table.refuse("resource", "is the MCP server") }
            // A hostile server could name an authorization server of its own, and get the secret or the assertion.
            if !table.isWritten("issuer") {
                table.refuse(
                    serviceKey,
                    "needs issuer with mcp: what proves the client is sent to that authorization server alone, never to one "
                        + "that only the MCP server names")
            }
        }
        // A client id is sent only to the issuer at which the client was registered.
        if table.isWritten("client_id"), !table.isWritten("issuer") {
            table.refuse(
                "client_id", "needs issuer with mcp: the authorization server at which this client was registered")
        }
        if !table.isWritten("client_id") {
            let clientKeys = ClientReader.secretKeys + ["client_key_id", "client_authentication"]
            for key in clientKeys where table.isWritten(key) && key != "client_secret_registered" {
                table.refuse(key, "belongs to a client_id, which is missing")
            }
        }
        let issuer = table.string("issuer")
        table.reporting("issuer") { () throws(OAuthError) in
            if let issuer { _ = try ProviderMetadata.discoveryRequests(issuer: issuer) }
        }
        let document = table.string("client_id_metadata_url")
        table.reporting("client_id_metadata_url") { () throws(OAuthError) in
            if let document { try ClientMetadataDocument.check(document) }
        }
        let server = table.reporting("mcp") { () throws(OAuthError) in try MCPServer(parsing: url) }
        guard let server, table.check.errors.count == before else { return nil }
        return .mcp(
            MCPConfiguration(
                server: server, issuer: issuer, clientMetadataURL: document,
                sendsResource: table.boolean("resource_parameter") ?? true,
                needsSignIn: table.boolean("sign_in") ?? true))
    }
}
