public import BrokerCore

/// Why something at an OAuth or OpenID provider was not done, as a fact. The broker carries it and does not read it.
public enum OAuthReason: KindReason, Equatable {
    // MARK: Registrations

    case noRegistrationEndpoint(issuer: String)
    case needsClientKey(issuer: String)
    case accountExists(AccountName)
    case vaultInMemory
    /// `isNew`: another name may be chosen.
    case registrationInProgress(AccountName, isNew: Bool)
    case registrationInUse(AccountName)
    case noRegistration(AccountName)
    case unreadableRegistration
    case otherClient(host: String)
    case noRegisteredSecret(AccountName)
    case secretExpired(AccountName)
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
    case noPushEndpoint(AccountName)
    case pushRefused(AccountName, host: String)
    case incompleteClient(AccountName, authentication: String)
    case providerMoved(AccountName)
    case noKeys
    /// The provider has no sign-in on another device. `isConfigured`: its endpoints are those of the configuration.
    case noDeviceEndpoint(AccountName, isConfigured: Bool)

    // MARK: MCP servers

    case notMCP(AccountName)
    case mcpIssuerWithoutPKCE(AccountName, issuer: String)
    case mcpOtherIssuer(AccountName, configured: String, announced: String)
    case mcpNeedsClient(AccountName, issuer: String, MCPDocument)
    /// The issuer refuses the parameter `resource`. `message` is what it said.
    case mcpResourceRefused(AccountName, host: String, message: String?)
    case mcpNeedsNoSignIn(AccountName, host: String)
    case mcpNeedsSignIn(AccountName, host: String)
    case mcpAcceptsToken(host: String)
    case mcpRefusesToken(AccountName, host: String)
    case mcpTokenLacksScopes(AccountName, host: String, scopes: [String])
    case mcpAnnounces(host: String, issuer: String, client: MCPClientWay, scopes: [String])
    case mcpIssuerChanged(AccountName, former: String, issuer: String)
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
        case configured
        case document
        case registration
        case none
    }

    // MARK: What a check found

    case issuerNotHTTPS
    case clientRejected(host: String, hasSecret: Bool)
    case clientKnown(host: String)
    /// The authorization endpoint shows an error. `message` is the provider's text, checked.
    case pageRejectsClient(host: String, status: Int, message: String?)
    case mcpClientForgotten(AccountName, host: String, hasExpiredSecret: Bool = false)
    case clientNotAllowed(host: String)
    case secretNotChecked(host: String)
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

    case tokenAtFirstConsent
    /// Most providers issue one for the scope `offline_access`.
    case tokenForOfflineAccess
    case tokenAfterConsent

    // MARK: Flows

    /// Nothing came within `seconds`. `pushed` is how long the URL of a pushed request was valid, in seconds.
    case noCallback(AccountName, seconds: Int, redirectURI: String, pushed: Int?)
    case noDeviceCode(AccountName, seconds: Int, userCode: String, page: String)
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
    public var sentence: String {
        switch self {
        case .noRegistrationEndpoint(let issuer):
            "\(issuer) has no registration_endpoint, so it registers no clients automatically. Register the "
                + "client at the provider by hand, and set client_id of the account."
        case .needsClientKey(let issuer):
            "\(issuer) accepts only methods of client authentication that need a key of the client. Register the "
                + "client by hand, and set client_id of the account."
        case .accountExists(let name):
            "The account \(name) exists already. Choose another name, or remove it and reload."
        case .vaultInMemory:
            "The vault is in memory: the registration's secrets would be lost when the daemon stops. "
                + "Register the client by hand, and set client_id of the account."
        case .registrationInProgress(let name, let isNew):
            "A registration for \(name) is in progress. Wait until it ends\(isNew ? ", or choose another name" : "")."
        case .registrationInUse(let name):
            "The account \(name) uses this registration. Remove the account and reload first."
        case .noRegistration(let name): "The vault holds no registration of \(name) for this issuer and client_id."
        case .unreadableRegistration: "This version cannot read the vault's record of this registration."
        case .otherClient(let host): "The registration response of \(host) is about another client."
        case .noRegisteredSecret(let name):
            "The vault holds no client secret of \(name) for this issuer and client_id. Register the "
                + "client again, or set client_secret_file."
        case .secretExpired(let name):
            "The client secret that the provider issued for \(name) has expired, and the provider issued no new one. "
                + "Register the client again."
        case .leftover(let leftover): leftover.sentence
        case .unfit(let cause): cause
        case .noMetadata: "The issuer has no metadata."
        case .wrongIssuer: "Look at issuer of the account."
        case .idTokenNotCheckable(let name, let cause): "\(name) cannot sign in: \(cause)."
        case .responseModeNotOffered(let name, let mode, let offered):
            "response_mode = \"\(mode)\" cannot be used for \(name): the provider's metadata "
                + "offer \(offered.joined(separator: ", ")). Leave response_mode out."
        case .noPushEndpoint(let name):
            "The sign-in of \(name) requires pushed authorization requests, but the provider's metadata have "
                + "no endpoint for them."
        case .pushRefused(let name, let host):
            "\(host) rejected the pushed authorization request of \(name) without a reason (HTTP 403). "
                + "Compare client_id, the client's secret and redirect_uri with what is registered there."
        case .incompleteClient(let name, let authentication):
            "\(name) authenticates with \(authentication), but its client secret or key is missing or empty."
        case .providerMoved(let name):
            "The provider of \(name) has moved to another host. Its tokens were not sent there."
        case .noKeys: "The provider's metadata names no jwks_uri, so its ID tokens cannot be checked."
        case .noDeviceEndpoint(let name, let isConfigured):
            "The provider of \(name) offers no sign-in on another device (RFC 8628)."
                + (isConfigured
                    ? " If it has an endpoint for that, add it to the account's endpoints as device_authorization."
                    : "")
        case .notMCP(let name): "\(name) is not an account at an MCP server."
        case .mcpIssuerWithoutPKCE(let name, let issuer):
            "\(name) cannot sign in at \(issuer), which its MCP server names: its metadata do not say that it supports S256 "
                + "(PKCE), which MCP requires."
        case .mcpOtherIssuer(let name, let configured, let announced):
            "The MCP server of \(name) does not name \(configured) as its authorization server, but \(announced). "
                + "If you trust it, set issuer to it, and client_id to a client that is registered there."
        case .mcpNeedsClient(let name, let issuer, .notTaken):
            "\(issuer) registers no clients by itself. Register a native app there by hand, and set issuer and client_id of "
                + "\(name)."
        case .mcpNeedsClient(let name, let issuer, .missing):
            "\(issuer) registers no clients by itself. It takes the URL of a client-id metadata document: host one, and set "
                + "client_id_metadata_url of \(name) to its URL. Or register a native app there by hand, and set issuer and "
                + "client_id."
        case .mcpNeedsClient(let name, let issuer, .shared):
            "\(issuer) registers no clients by itself, and does not announce that its responses name it (iss, RFC 9207). So "
                + "\(name) needs a redirect URI that it shares with no other account: add http://127.0.0.1/callback/\(name) to "
                + "redirect_uris of the client-id metadata document, and set redirect_uri of \(name) to "
                + "http://127.0.0.1:{port}/callback/\(name)."
        case .mcpResourceRefused(let name, let host, let message):
            "\(host) refuses the parameter resource" + (message.map { " (\($0))" } ?? "")
                + ". If it takes no such parameter, set resource_parameter = false for \(name) and sign in again."
        case .mcpNeedsNoSignIn(let name, let host):
            "\(host) needs no sign-in: it responds without a token, and names no authorization server. Set sign_in = false for "
                + "\(name)."
        case .mcpNeedsSignIn(let name, let host):
            "\(host) demands a token, and \(name) has sign_in = false. Remove that, and sign in."
        case .mcpAcceptsToken(let host): "\(host) accepts the account's token."
        case .mcpRefusesToken(let name, let host):
            "\(host) refuses the token of \(name), although it has not expired. Sign in again."
        case .mcpTokenLacksScopes(let name, let host, let scopes):
            "\(host) wants more scopes than the token of \(name) has"
                + (scopes.isEmpty ? "." : ": \(scopes.joined(separator: " ")).")
        case .mcpAnnounces(let host, let issuer, let client, let scopes):
            "\(host) names \(issuer) as its authorization server; \(client.sentence). "
                + (scopes.isEmpty ? "It names no scopes." : "Scopes: \(scopes.joined(separator: " ")).")
        case .mcpIssuerChanged(let name, let former, let issuer):
            "The MCP server of \(name) has another authorization server than at the last sign-in: \(issuer) in "
                + "place of \(former). The next sign-in takes place there, with a client of its own."
        case .mcpNamesMoreScopes(let name, let scopes):
            "The MCP server of \(name) names scopes that the sign-in did not request: \(scopes.joined(separator: " ")). The "
                + "next sign-in requests them."
        case .mcpResponds(let status): "responds at this URL (HTTP \(status))"
        case .mcpNotAsked(let host): "It could not be found out which authorization server \(host) has."
        case .issuerNotHTTPS: "The issuer is not an https URL."
        case .clientRejected(let host, let hasSecret):
            "\(host) rejects this client: "
                + (hasSecret ? "client_id, client_authentication or the client's secret" : "client_id") + " is wrong."
        case .clientKnown(let host): "\(host) knows this client."
        case .pageRejectsClient(let host, let status, let message):
            "\(host) answers an authorization request of this client with an error (HTTP \(status)"
                + (message.map { ": \($0)" } ?? "")
                + "), so no callback would come: client_id or redirect_uri is not registered there."
        case .mcpClientForgotten(let name, let host, hasExpiredSecret: true):
            "The client secret that \(host) issued for \(name) has expired. The next sign-in registers another client."
        case .mcpClientForgotten(let name, let host, hasExpiredSecret: false):
            "\(host) does not know the client that was registered for \(name). The next sign-in registers another one."
        case .clientNotAllowed(let host):
            "\(host) knows this client, but does not allow it to sign users in (unauthorized_client): allow the client the "
                + "authorization code grant there."
        case .secretNotChecked(let host):
            "The client's secret could not be checked: \(host) rejects a made-up code before it looks at the secret."
        case .portCompared(let host):
            "\(host) compares the port of the redirect URI, and the client is registered without one: no sign-in can "
                + "succeed. Register the client again with a fixed port."
        case .offlineAccessNotListed(let host):
            "\(host) does not list offline_access among its scopes. It may reject a sign-in that requests it, or give a "
                + "refresh token all the same."
        case .registersClients(let host): "\(host) registers clients that ask for it."
        case .noTokenEndpoint(let host): "\(host) has no token endpoint at this URL (HTTP 404)."
        case .respondsAtTokenEndpoint: "responds at its token endpoint"
        case .respondsAtPage: "responds at its authorization endpoint"
        case .publishesMetadata: "publishes metadata of this issuer"
        case .unusableMembers(let host, let causes):
            "The metadata of \(host) have members that are not used: \(causes.joined(separator: "; "))."
        case .publishesNoUsableMetadata(let cause): "publishes no usable metadata of this issuer: \(cause)"
        case .metadataNotUsable(let cause): "cannot be used: \(cause)"
        case .invalidResponse(let response, let host, let cause):
            "The \(response) response of \(host) is not valid: \(cause)."
        case .tokenEndpointNotFound(let host, let isConfigured):
            "\(host) has no token endpoint at the URL that "
                + (isConfigured
                    ? "the account has (HTTP 404). Look at endpoints.token of the account."
                    : "its metadata have (HTTP 404). Look at issuer of the account.")
        case .invalidIDToken(let host, let claim, let cause):
            "The ID token of \(host) is not valid (\(claim)): \(cause)."
        case .idTokenOfOtherUser(let host):
            "The ID token of \(host) is not valid (sub): it is for another user than before."
        case .strayInvalidGrant(let host, let status):
            "\(host) sent “invalid_grant” with HTTP status \(status)."
        case .noIDToken(let host): "The token response of \(host) has no ID token."
        case .userinfoOfOtherUser(let host): "The userinfo of \(host) is about another user."
        case .tokenAtFirstConsent:
            "Google issues one only at the user's first consent: add authorization_params = "
                + "{ prompt = \"consent\" } to the account and sign in again."
        case .tokenForOfflineAccess: "Most providers issue one for the scope offline_access."
        case .tokenAfterConsent:
            "Some providers issue one only after the user's consent: set offline_access_consent = true."
        case .noCallback(let name, let seconds, let redirectURI, let pushed):
            "The sign-in of \(name) was not finished within \(seconds) seconds. "
                + "Waited for a callback to \(redirectURI)."
                + (pushed.map {
                    " The URL of its sign-in page was valid for \($0) seconds and for one use. "
                        + "Start the sign-in again for a new one."
                } ?? "")
        case .noDeviceCode(let name, let seconds, let userCode, let page):
            "The sign-in of \(name) was not finished within \(seconds) seconds. Waited for the code "
                + "\(userCode) to be entered at \(page)."
        case .deviceCodeExpired(let name, let host):
            "The sign-in of \(name) was not finished in time: \(host) reports that its code has expired."
        case .wrongIssuerInCallback(_, _, isMissing: true):
            "The provider's response names no issuer (iss), although its metadata announce it "
                + "(authorization_response_iss_parameter_supported, RFC 9207). The response was refused."
        case .wrongIssuerInCallback(let expected, let stated, isMissing: false):
            "The provider's response was refused: "
                + (stated.map { "its issuer (iss) is \($0)" } ?? "its issuer (iss) is another one")
                + (expected.map { ", and this sign-in was begun at \($0)." } ?? ".")
                + (stated == expected.map { $0 + "/" } || expected == stated.map { $0 + "/" }
                    ? " They differ by the slash at the end." : "")
        case .signedInAlready(let name): "\(name) is signed in already. Sign out first, or switch the user."
        case .noTokenHandedIn: "missing: a session that is passed to Ringback consists of it"
        case .handedInTokenRefused: "the provider does not accept it for this client; nothing was stored"
        case .handedInSessionNotKept(let isRevoked):
            "Nothing was stored. The provider had replaced the refresh token"
                + (isRevoked ? ", and the new one is revoked" : "")
                + ": sign in again in the program that the session is from."
        case .serviceHasNoMethod(let name, let grant, let method):
            "\(name) is a service (\(grant)): it needs no sign-in, and has no method “\(method)”."
        case .serviceIsConfigured(let name, let grant):
            "\(name) is a service (\(grant)): it needs no sign-in, and its configuration says what it asks for"
        case .serviceHasNoSignIn(let name): "\(name) is a service, which has no sign-in."
        case .serviceHasNoAssertion(let name): "\(name) has no assertion_file."
        case .serviceHasNoIDTokens(let name, let grant): "\(name) is a service (\(grant)), which has no ID tokens."
        }
    }
}

extension OAuthReason.Leftover {
    fileprivate var sentence: String {
        switch self {
        case .maybeRegistered(let client):
            "The provider may have registered \(name(client)), but sent no token to delete it."
        case .noDeletionURL(let client, let isTokenKept):
            "The provider has registered \(name(client)), but sent no URL to delete it. "
                + (isTokenKept ? "The token for that is stored in the vault." : "")
        case .notDeleted(let client, let isTokenKept):
            "The provider has registered \(name(client)), and deleting it failed. "
                + (isTokenKept ? "Its deletion token is stored in the vault; see the manual, ringback(1)." : "")
        case .deleted: "The registration was deleted again."
        }
    }

    private func name(_ client: String?) -> String { client.map { "the client \($0)" } ?? "a client" }
}

extension OAuthReason.MCPClientWay {
    /// The end of a sentence.
    fileprivate var sentence: String {
        switch self {
        case .configured: "the client is the configured one"
        case .document: "the client is the metadata document of client_id_metadata_url"
        case .registration: "it registers the client by itself"
        case .none: "it registers no clients by itself"
        }
    }
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
