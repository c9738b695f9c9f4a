public import BrokerCore
internal import HTTPMessages
public import OAuth

/// The configuration of an account at an MCP server. Issuer, client and scopes are found at each sign-in.
public struct MCPAccount: Sendable {
    public let server: MCPServer
    /// The only issuer whose tokens are accepted; nil for the first one that the server names.
    public var issuer: String?
    /// The URL of our client-id metadata document; nil if there is none.
    public var clientMetadataURL: String?
    /// False for a server that refuses the parameter `resource`.
    public var sendsResource = true
    /// False for a server that takes requests without a token.
    public var needsSignIn = true
    /// The settings for the client and its requests. Their endpoints are replaced by those of the issuer.
    public var rules: OAuthAccount

    public init(server: MCPServer, rules: OAuthAccount) {
        self.server = server
        self.rules = rules
    }
}

extension MCPAccount: AccountKind {
    public func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider {
        MCPProvider(account: account, kind: self, tools: tools)
    }

    /// The server, and the issuer and client of the configuration. The issuer and client that a sign-in has found are
    /// stored with its session.
    public func binding(of account: Account) -> SessionBinding {
        let words = [MCPAccount.bindingWord, server.resource] + [issuer].compactMap { $0 }
        return SessionBinding(provider: words.joined(separator: " "), clientID: account.clientID)
    }

    public func issuer(of account: Account) -> String? { issuer }

    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {}

    public func isUsable(_ setting: UnusableSetting) async -> Bool { await rules.isUsable(setting) }
}

extension MCPAccount {
    fileprivate static let bindingWord = "mcp"

    /// The account that a session's binding describes, without its settings; nil for the binding of another kind of
    /// account.
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
