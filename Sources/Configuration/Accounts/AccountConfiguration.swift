public import HTTPMessages
public import OAuth
public import Secrets

/// One account as configured: a provider, a client, scopes. Every value has passed its checks.
public struct AccountConfiguration: Sendable, Equatable {
    /// `[a-z0-9][a-z0-9._-]{0,63}`
    public let name: String
    public let provider: AccountProvider
    /// What the provider knows us as; empty for Supabase, which registers no clients.
    public let clientID: String
    /// Nil if not stated and the provider's metadata are to decide (RFC 8414: nothing said means basic).
    public let clientAuthentication: ClientAuthentication?
    public let clientSecret: ClientSecretSource
    /// A path, to be read with ``readClientKey(user:)`` whenever it is needed; nil without `private_key_jwt`.
    public let clientKeyFile: String?
    /// The credential that is the key, in place of a file: `$CREDENTIALS_DIRECTORY/NAME` was written for it.
    public let clientKeyCredential: String?
    /// What the provider calls that key; nil if its file says it, or nobody needs it.
    public let clientKeyID: String?
    public let scopes: [String]
    /// How tokens are had without a person; nil where people sign in.
    public let service: ServiceConfiguration?
    /// Where the browser brings the answer.
    public let redirect: RedirectTarget
    /// As written in the configuration; nil for the default.
    public let redirectURI: String?
    /// Where the provider sends the browser after a sign-out there; nil if it is to stay.
    public let postLogoutRedirectURI: String?
    /// `query` or `form_post`; nil if the request is not to say.
    public let responseMode: String?
    /// True if every authorization response must carry `iss` (RFC 9207), whatever the provider's metadata say.
    public let requiresIssuerInResponse: Bool
    /// Whether authorization requests are pushed (RFC 9126).
    public let pushedRequests: PushedRequests
    /// True if the user is asked for consent (`prompt=consent`) when `offline_access` is requested by OpenID Connect.
    public let asksConsentForOfflineAccess: Bool
    /// Beside those that the request sets itself: the preset's and the configuration's, sorted by name.
    public let authorizationParameters: [FormEncoding.Pair]
    /// Seconds that a sign-in may take.
    public let flowTimeout: Int
    /// Seconds before expiry at which to refresh; nil for the usual rule.
    public let refreshMargin: Int?
    /// Seconds before a session's own end at which to tell of it, the longest first; nil for the usual ones.
    public let sessionWarnings: [Int]?
    /// Users beside the owner whose connections may bring a callback.
    public let callbackPeerUIDs: [UInt32]
    /// Exact origins that an adapter may send this account's token to.
    public let origins: [String]
    /// The certificates and public keys to believe; read when the configuration was.
    public let trust: ServerTrust
    /// The way to the provider.
    public let route: HTTPRoute
    /// Header fields that every request to the provider gets.
    public let headers: [FormEncoding.Pair]
    public let policy: AccountPolicy
    /// Where the account is written.
    public let source: ConfigurationSource
    /// The line of each key that is written in it.
    let lines: [String: Int]
}

/// Whether authorization requests go to the provider before the browser does (RFC 9126), in the words of the file.
public enum PushedRequests: String, Sendable, Equatable, CaseIterable {
    /// Where the provider's metadata offer it. If it does not work and is not required there, the request is sent
    /// through the browser.
    case automatic = "auto"
    /// Never, whatever the metadata say.
    case never
    /// Always: without it there is no sign-in.
    case required
}

/// Who may use an account.
public enum AccountPolicy: String, Sendable, Equatable, CaseIterable {
    /// Every program of the daemon's own user.
    case sameUID = "same-uid"
}

/// Where something is written.
public struct ConfigurationSource: Sendable, Equatable, CustomStringConvertible {
    /// The file's path.
    public let file: String
    /// From 1.
    public let line: Int

    public var description: String { "\(file):\(line)" }
}

/// An account's authorization server, and how its endpoints become known.
public enum AccountProvider: Sendable, Equatable {
    case preset(ProviderPreset)
    /// By discovery, from this issuer.
    case oidc(issuer: String)
    /// Endpoints by hand.
    case oauth2(ProviderMetadata)
    case supabase(SupabaseConfiguration)

    /// The word of the socket API: a preset's name, `supabase`, `oidc` or `oauth2`.
    public var word: String {
        switch self {
        case .preset(let preset): preset.name
        case .oidc: "oidc"
        case .oauth2: "oauth2"
        case .supabase: "supabase"
        }
    }

    /// The issuer to discover; nil where nothing is discovered.
    public var issuer: String? {
        switch self {
        case .oidc(let issuer): issuer
        case .preset(let preset): if case .issuer(let issuer)? = try? preset.source() { issuer } else { nil }
        case .oauth2, .supabase: nil
        }
    }

    /// The endpoints, where they are known without discovery.
    public var endpoints: ProviderMetadata? {
        switch self {
        case .oauth2(let endpoints): endpoints
        case .preset(let preset): if case .endpoints(let endpoints)? = try? preset.source() { endpoints } else { nil }
        case .oidc, .supabase: nil
        }
    }
}

/// Where the client's secret is. Prints no secret: an inline one is a ``Secret``.
public enum ClientSecretSource: Sendable, Equatable {
    case none
    case inline(Secret)
    /// A path, to be read with ``AccountConfiguration/readClientSecret()`` whenever it is needed.
    case file(path: String)
    /// An argument vector, for the helper process alone to run.
    case command([String])
    /// A credential's name: it was handed to the daemon at its start, or is in `$CREDENTIALS_DIRECTORY`.
    case credential(String)
    /// In the vault, from the registration of the client.
    case registered
}

extension AccountConfiguration {
    /// A mistake that shows only when a key's value is used: a file that went, a secret that was not given.
    public func mistake(at key: String, _ message: String) -> ConfigurationError {
        ConfigurationError(
            file: source.file, line: lines[key] ?? source.line, key: "accounts.\(name).\(key)", message: message)
    }

    /// The key that names the credential of ``clientSecretCredential``.
    public var clientCredentialKey: String {
        lines["client_secret_credential"] == nil ? "client_secret_file" : "client_secret_credential"
    }

    /// The extra parameters as ``AuthorizationRequest`` takes them.
    public var additionalParameters: [(String, String)] { authorizationParameters.map { ($0.name, $0.value) } }

    /// The command that prints the client's secret, if that is where it comes from.
    public var clientSecretCommand: [String]? {
        if case .command(let command) = clientSecret { command } else { nil }
    }
}
