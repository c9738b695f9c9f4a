public import BrokerCore

/// Why something at an OAuth or OpenID provider was not done, as a fact. The broker carries it and does not read it.
public enum OAuthReason: KindReason, Equatable {
    // MARK: Registrations

    /// The issuer registers no clients automatically.
    case noRegistrationEndpoint(issuer: String)
    /// The issuer accepts only clients that authenticate with a key of their own.
    case needsClientKey(issuer: String)
    case accountExists(AccountName)
    /// The vault is in memory, so that it would lose the registration's secrets.
    case vaultInMemory
    /// `isNew`: another name may be chosen.
    case registrationInProgress(AccountName, isNew: Bool)
    case registrationInUse(AccountName)
    case noRegistration(AccountName)
    case unreadableRegistration
    /// The registration response is about another client.
    case otherClient(host: String)
    /// The vault has no client secret for the account's issuer and client.
    case noRegisteredSecret(AccountName)
    /// The client secret that the provider issued has expired.
    case secretExpired(AccountName)
    /// What became of a registration that cannot be used.
    case leftover(Leftover)

    /// A registration that could not be used. `client` is its client_id, where the provider said one.
    public enum Leftover: Sendable, Equatable {
        case maybeRegistered(client: String?)
        /// `isTokenKept`: the vault has the token to delete it.
        case noDeletionURL(client: String?, isTokenKept: Bool)
        case notDeleted(client: String?, isTokenKept: Bool)
        case deleted
    }

    // MARK: Metadata and configuration

    case noMetadata
    /// The account's settings do not fit the provider. `cause` is the whole text.
    case unfit(cause: String)
    /// The account's issuer may be wrong.
    case wrongIssuer
    /// The ID token that the scopes request could not be validated. `cause` is the end of a sentence.
    case idTokenNotCheckable(AccountName, cause: String)
    case responseModeNotOffered(AccountName, mode: String, offered: [String])
    /// Requests have to be pushed, and the provider has no endpoint for that.
    case noPushEndpoint(AccountName)
    /// The provider refused a pushed request without a reason.
    case pushRefused(AccountName, host: String)
    /// The client's secret or key is missing or empty.
    case incompleteClient(AccountName, authentication: String)
    /// The provider has moved to another host, where no tokens were sent.
    case providerMoved(AccountName)
    case noKeys
    /// The provider has no sign-in on another device. `isConfigured`: its endpoints are those of the configuration.
    case noDeviceEndpoint(AccountName, isConfigured: Bool)

    // MARK: MCP servers

    /// The account is not at an MCP server.
    case notMCP(AccountName)
    /// The issuer of the account's MCP server does not announce S256.
    case mcpIssuerWithoutPKCE(AccountName, issuer: String)
    /// The server does not name the configured issuer.
    case mcpOtherIssuer(AccountName, configured: String, announced: String)
    /// The issuer registers no clients, and the account has none that it takes.
    case mcpNeedsClient(AccountName, issuer: String, MCPDocument)
    /// The issuer refuses the parameter `resource`. `message` is what it said.
    case mcpResourceRefused(AccountName, host: String, message: String?)
    /// The server responds without a token, and has no protected-resource metadata.
    case mcpNeedsNoSignIn(AccountName, host: String)
    /// The account says that the server needs no sign-in, and it demands a token.
    case mcpNeedsSignIn(AccountName, host: String)
    case mcpAcceptsToken(host: String)
    /// The server refuses the token of the session, which has not expired.
    case mcpRefusesToken(AccountName, host: String)
    case mcpTokenLacksScopes(AccountName, host: String, scopes: [String])
    case mcpAnnounces(host: String, issuer: String, client: MCPClientWay, scopes: [String])
    /// The server names another issuer than at the last sign-in.
    case mcpIssuerChanged(AccountName, former: String, issuer: String)
    /// The server names scopes that the sign-in of the session did not request.
    case mcpNamesMoreScopes(AccountName, scopes: [String])
    /// The rest of a sentence that begins with the host.
    case mcpResponds(status: Int)
    case mcpNotAsked(host: String)

    /// Why an issuer that registers no clients takes no client-id metadata document of the account.
    public enum MCPDocument: Sendable, Equatable {
        /// It takes no such documents.
        case notTaken
        /// It takes one, and the account has none.
        case missing
        /// It does not announce `iss` in its responses, and the account shares its redirect URI with others.
        case shared
    }

    /// Where the client of an account at an MCP server comes from.
    public enum MCPClientWay: Sendable, Equatable {
        /// From the configuration.
        case configured
        /// A client-id metadata document.
        case document
        /// The issuer registers clients.
        case registration
        case none
    }

    // MARK: What a check found

    case issuerNotHTTPS
    case clientRejected(host: String, hasSecret: Bool)
    case clientKnown(host: String)
    /// The authorization endpoint shows an error. `message` is the provider's text, checked.
    case pageRejectsClient(host: String, status: Int, message: String?)
    /// The issuer does not know the client that was registered for the account, or the secret that it issued has
    /// expired. The next sign-in registers another one.
    case mcpClientForgotten(AccountName, host: String, hasExpiredSecret: Bool = false)
    /// The token endpoint authenticated the client, and does not let it redeem codes.
    case clientNotAllowed(host: String)
    /// The token endpoint does not tell a wrong client secret from a right one.
    case secretNotChecked(host: String)
    /// The client is registered with a redirect URI without a port, and the provider compares the port.
    case portCompared(host: String)
    /// The scopes that the metadata list do not have `offline_access`, which the account requests.
    case offlineAccessNotListed(host: String)
    case registersClients(host: String)
    case noTokenEndpoint(host: String)
    // The rest of a sentence that begins with the host.
    case respondsAtTokenEndpoint
    case respondsAtPage
    case publishesMetadata
    /// Members of the metadata that are not used. `causes`: texts that begin with their names.
    case unusableMembers(host: String, causes: [String])
    case publishesNoUsableMetadata(cause: String)
    case metadataNotUsable(cause: String)

    // MARK: Responses

    /// `response` and `cause` are parts of a sentence.
    case invalidResponse(response: String, host: String, cause: String)
    /// `isConfigured`: the endpoint is one of the configuration.
    case tokenEndpointNotFound(host: String, isConfigured: Bool)
    case invalidIDToken(host: String, claim: String, cause: String)
    case idTokenOfOtherUser(host: String)
    /// `invalid_grant` with a status that token endpoints do not use.
    case strayInvalidGrant(host: String, status: Int)
    case noIDToken(host: String)
    case userinfoOfOtherUser(host: String)

    // MARK: How to get a refresh token

    /// Google issues one only at the user's first consent.
    case tokenAtFirstConsent
    /// Most providers issue one for the scope `offline_access`.
    case tokenForOfflineAccess
    /// Some providers issue one only after the user's consent.
    case tokenAfterConsent

    // MARK: Flows

    /// Nothing came within `seconds`. `pushed` is how long the URL of a pushed request was valid, in seconds.
    case noCallback(AccountName, seconds: Int, redirectURI: String, pushed: Int?)
    case noDeviceCode(AccountName, seconds: Int, userCode: String, page: String)
    /// The provider says that the device code has expired.
    case deviceCodeExpired(AccountName, host: String)
    /// The callback's `iss` is missing, though the provider announces it, or is not the expected issuer. `stated` is nil
    /// if it is missing or no URL.
    case wrongIssuerInCallback(expected: String?, stated: String?, isMissing: Bool)
    case signedInAlready(AccountName)
    case noTokenHandedIn
    case handedInTokenRefused
    /// The provider replaced the refresh token, and the session is not kept. `isRevoked`: the new one is revoked.
    case handedInSessionNotKept(isRevoked: Bool)

    // MARK: Services

    case serviceHasNoMethod(AccountName, grant: String, method: SignInMethod)
    case serviceIsConfigured(AccountName, grant: String)
    case serviceHasNoSignIn(AccountName)
    case serviceHasNoAssertion(AccountName)
    case serviceHasNoIDTokens(AccountName, grant: String)
}

extension OAuthReason {
    /// True if it is about the issuer that an authorization response names.
    public var isAboutIssuer: Bool { if case .wrongIssuerInCallback = self { true } else { false } }
}

extension Reason {
    /// Nil for another kind's.
    var ofOAuth: OAuthReason? { if case .kind(let fact) = self { fact.reason as? OAuthReason } else { nil } }

    static func oauth(_ reason: OAuthReason) -> Reason { .kind(KindFact(reason)) }
}
