public import OAuth

/// The settings of an account at an MCP server.
public struct MCPConfiguration: Sendable, Equatable {
    public let server: MCPServer
    /// The only issuer whose tokens are taken; nil for the first one that the server names.
    public let issuer: String?
    /// The client-id metadata document; nil if there is none.
    public let clientMetadataURL: String?
    /// False if the parameter `resource` is not sent.
    public let sendsResource: Bool
    /// False if the server takes requests without a token.
    public let needsSignIn: Bool
}

/// Reads the settings of an account at an MCP server.
struct MCPReader {
    /// The keys that only such an account has.
    static let keys = ["client_id_metadata_url", "resource_parameter", "sign_in"]

    /// Keys that name a provider or a client in another way.
    private static let foreignKeys = [
        "provider", "endpoints", "grant", "client_secret_registered", "authorization_response_iss",
        "offline_access_consent",
    ]

    /// Nil if there is an error. Reports what is wrong at the account.
    static func read(_ account: inout AccountTable, _ url: String) -> AccountProvider? {
        let table = account.members
        let before = account.check.errors.count
        for key in foreignKeys where account.isWritten(key) {
            account.refuse(key, "cannot be combined with mcp")
        }
        // A client id is sent only to the issuer at which the client was registered.
        if account.isWritten("client_id"), !account.isWritten("issuer") {
            account.refuse(
                "client_id",
                "needs issuer with mcp: the authorization server at which this client was registered")
        }
        if !account.isWritten("client_id") {
            let clientKeys = ClientReader.secretKeys + ["client_key_id", "client_authentication"]
            for key in clientKeys where account.isWritten(key) && key != "client_secret_registered" {
                account.refuse(key, "belongs to a client_id, which is missing")
            }
        }
        let issuer = table.string("issuer")
        do throws(OAuthError) {
            if let issuer { _ = try ProviderMetadata.discoveryRequests(issuer: issuer) }
        } catch {
            account.refuse("issuer", AccountReader.reason(error))
        }
        let document = table.string("client_id_metadata_url")
        do throws(OAuthError) {
            if let document { try ClientMetadataDocument.check(document) }
        } catch {
            account.refuse("client_id_metadata_url", AccountReader.reason(error))
        }
        do throws(OAuthError) {
            let server = try MCPServer(parsing: url)
            guard account.check.errors.count == before else { return nil }
            return .mcp(
                MCPConfiguration(
                    server: server, issuer: issuer, clientMetadataURL: document,
                    sendsResource: table.boolean("resource_parameter") ?? true,
                    needsSignIn: table.boolean("sign_in") ?? true))
        } catch {
            account.refuse("mcp", AccountReader.reason(error))
            return nil
        }
    }
}
