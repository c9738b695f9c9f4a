public import BrokerCore
internal import RingbackBase

/// Why something at an OAuth or OpenID provider was not done, as a fact. The broker carries it and does not read it.
public enum OAuthReason: KindReason, Equatable {
    // MARK: Registrations

    case noRegistrationEndpoint(issuer: String)
    case needsClientKey(issuer: String)
    case vaultInMemory
    /// `isNew`: another name may be chosen.
    case registrationInProgress(AccountName, isNew: Bool)
    case noRegistration(AccountName)
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

    // MARK: Metadata and configuration

    case responseModeNotOffered(AccountName, mode: String, offered: [String])
    /// The provider has no sign-in on another device. `isConfigured`: its endpoints are those of the configuration.
    case noDeviceEndpoint(AccountName, isConfigured: Bool)

    // MARK: Tokens that are bound to a key

    /// `use` is the value of the setting `dpop`.
    case dpopNotOffered(AccountName, use: String, host: String)
    case dpopOfOtherProgram(AccountName, use: String)
    /// `clockLead`: seconds by which the provider's clock is ahead of ours; 0 if that has not mattered.
    case dpop(host: String, DPoPState, clockLead: Int)

    public enum DPoPState: Sendable, Equatable {
        case off, nextSignIn, bound, refreshTokenBound
        /// The session has no key, and the configuration wants one.
        case notBound

        /// The end of a sentence.
        fileprivate var sentence: String {
            switch self {
            case .off: "offers to bind tokens to a key (DPoP), which is off for this account"
            case .nextSignIn: "offers to bind tokens to a key (DPoP), as the next sign-in asks it to"
            case .bound: "binds the session's tokens to its key (DPoP)"
            case .refreshTokenBound: "was asked to bind the session's refresh token to its key (DPoP)"
            case .notBound: "offers to bind tokens to a key (DPoP), and those of the session are not: sign in again"
            }
        }
    }

    // MARK: MCP servers

    case mcpOtherIssuer(AccountName, configured: String, announced: String)
    /// A service at an MCP server without an issuer of the configuration.
    case mcpNeedsIssuer(AccountName)
    case mcpNeedsClient(AccountName, issuer: String, MCPDocument)
    /// The issuer refuses the parameter `resource`. `message` is what it said.
    case mcpResourceRefused(AccountName, host: String, message: String?)
    case mcpNeedsNoSignIn(AccountName, host: String)
    case mcpAcceptsToken(host: String)
    case mcpRefusesToken(AccountName, host: String)
    case mcpTokenLacksScopes(AccountName, host: String, scopes: [String])
    case mcpAnnounces(host: String, issuer: String, client: MCPClientWay, scopes: [String])
    case mcpIssuerChanged(AccountName, former: String, issuer: String)
    case mcpNamesMoreScopes(AccountName, scopes: [String])
    /// The rest of a sentence that begins with the host.
    case mcpResponds(status: Int)

    /// Why an issuer that registers no clients takes no client-id metadata document of the account.
    public enum MCPDocument: Sendable, Equatable {
        case notTaken
        /// It takes one, and the account has none.
        case missing
        /// It does not announce `iss` in its responses, and the account shares its redirect URI with others.
        case shared
    }

    public enum MCPClientWay: Sendable, Equatable {
        case configured
        case document
        case registration
        case none

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

    // MARK: What a check found

    case clientRejected(host: String, hasSecret: Bool)
    case clientKnown(host: String)
    /// `message` is the provider's text, checked.
    case pageRejectsClient(host: String, status: Int, message: String?)
    case mcpClientForgotten(AccountName, host: String, hasExpiredSecret: Bool = false)
    case secretNotChecked(host: String)
    case tokenAtFirstConsent

    // MARK: Flows

    /// Nothing came within `seconds`. `pushed` is how long the URL of a pushed request was valid, in seconds.
    case noCallback(AccountName, seconds: Int, redirectURI: String, pushed: Int?)
    case noDeviceCode(AccountName, seconds: Int, userCode: String, page: String)
    /// The callback's `iss` is not the expected issuer, or `isMissing`. `stated` is nil if it is no URL.
    case wrongIssuerInCallback(expected: String?, stated: String?, isMissing: Bool)
    /// The provider replaced the refresh token, and the session is not kept. `isRevoked`: the new one is revoked.
    case handedInSessionNotKept(isRevoked: Bool)

    /// True if it is about the issuer that an authorization response names.
    public var isAboutIssuer: Bool { if case .wrongIssuerInCallback = self { true } else { false } }

    public var sentence: String {
        switch self {
        case .noRegistrationEndpoint(let issuer):
            "\(issuer) has no registration_endpoint, so it registers no clients automatically. Register the "
                + "client at the provider by hand, and set client_id of the account."
        case .needsClientKey(let issuer):
            "\(issuer) accepts only methods of client authentication that need a key of the client. Register the "
                + "client by hand, and set client_id of the account."
        case .vaultInMemory:
            "The vault is in memory: the registration's secrets would be lost when the daemon stops. "
                + "Register the client by hand, and set client_id of the account."
        case .registrationInProgress(let name, let isNew):
            "A registration for \(name) is in progress. Wait until it ends\(isNew ? ", or choose another name" : "")."
        case .noRegistration(let name): "The vault holds no registration of \(name) for this issuer and client_id."
        case .noRegisteredSecret(let name):
            "The vault holds no client secret of \(name) for this issuer and client_id. Register the "
                + "client again, or set client_secret_file."
        case .secretExpired(let name):
            "The client secret that the provider issued for \(name) has expired, and the provider issued no new one. "
                + "Register the client again."
        case .leftover(let leftover): leftover.sentence
        case .responseModeNotOffered(let name, let mode, let offered):
            "response_mode = \"\(mode)\" cannot be used for \(name): the provider's metadata "
                + "offer \(offered.joined(separator: ", ")). Leave response_mode out."
        case .noDeviceEndpoint(let name, let isConfigured):
            "The provider of \(name) offers no sign-in on another device (RFC 8628)."
                + (isConfigured
                    ? " If it has an endpoint for that, add it to the account's endpoints as device_authorization."
                    : "")
        case .dpopNotOffered(let name, let use, let host):
            "dpop = \"\(use)\" cannot be used for \(name): the metadata of \(host) do not offer to bind tokens to a key "
                + "with ES256 (dpop_signing_alg_values_supported, RFC 9449). Leave dpop out."
        case .dpopOfOtherProgram(let name, let use):
            "\(name) has dpop = \"\(use)\", and the tokens of another program are bound to no key of Ringback. Sign in "
                + "instead."
        case .dpop(let host, let state, let lead):
            "\(host) \(state.sentence)."
                + (lead == 0
                    ? ""
                    : " Proofs are dated by its clock: this machine's is \(abs(lead)) s \(lead > 0 ? "behind" : "ahead").")
        case .mcpOtherIssuer(let name, let configured, let announced):
            "The MCP server of \(name) does not name \(configured) as its authorization server, but \(announced). "
                + "If you trust it, set issuer to it, and client_id to a client that is registered there."
        case .mcpNeedsIssuer(let name):
            "\(name) has no issuer: what proves the client is sent to no authorization server that only the MCP server names. "
                + "Set issuer to the one that may have it."
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
        case .secretNotChecked(let host):
            "The client's secret could not be checked: \(host) rejects a made-up code before it looks at the secret."
        case .tokenAtFirstConsent:
            "Google issues one only at the user's first consent: add authorization_params = "
                + "{ prompt = \"consent\" } to the account and sign in again."
        case .noCallback(let name, let seconds, let redirectURI, let pushed):
            "The sign-in of \(name) was not finished within \(Language.english.span(seconds)). "
                + "Waited for a callback to \(redirectURI)."
                + (pushed.map {
                    " The URL of its sign-in page was valid for \($0) seconds and for one use. "
                        + "Start the sign-in again for a new one."
                } ?? "")
        case .noDeviceCode(let name, let seconds, let userCode, let page):
            "The sign-in of \(name) was not finished within \(Language.english.span(seconds)). Waited for the code "
                + "\(userCode) to be entered at \(page)."
        case .wrongIssuerInCallback(_, _, isMissing: true):
            "The provider's response names no issuer (iss), although its metadata announce it "
                + "(authorization_response_iss_parameter_supported, RFC 9207). The response was refused."
        case .wrongIssuerInCallback(let expected, let stated, isMissing: false):
            "The provider's response was refused: "
                + (stated.map { "its issuer (iss) is \($0)" } ?? "its issuer (iss) is another one")
                + (expected.map { ", and this sign-in was begun at \($0)." } ?? ".")
                + (stated == expected.map { $0 + "/" } || expected == stated.map { $0 + "/" }
                    ? " They differ by the slash at the end." : "")
        case .handedInSessionNotKept(let isRevoked):
            "Nothing was stored. The provider had replaced the refresh token"
                + (isRevoked ? ", and the new one is revoked" : "")
                + ": sign in again in the program that the session is from."
        }
    }
}

extension Reason {
    /// Nil for another kind's.
    var ofOAuth: OAuthReason? { if case .kind(let fact) = self { fact.reason as? OAuthReason } else { nil } }

    static func oauth(_ reason: OAuthReason) -> Reason { .kind(KindFact(reason)) }
}
