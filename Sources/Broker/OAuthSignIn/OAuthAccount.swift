public import BrokerCore
public import OAuth
public import RingbackBase

/// The configuration of an account at an OAuth or OpenID Connect provider.
public struct OAuthAccount: Sendable {
    public var endpoints: Account.Endpoints
    /// Nil if it is chosen from what the provider offers.
    public var clientAuthentication: ClientAuthentication?
    public var clientSecret: Account.SecretSource?
    /// If it is set, the client authenticates with `private_key_jwt`, or signs its own grant (`self_issued_jwt`).
    public var clientKey: Account.KeySource?
    public var responseMode: ResponseMode?
    /// Every authorization response must carry `iss` (RFC 9207), whatever the metadata say.
    public var requiresIssuerInResponse = false
    public var pushedRequests = PushedRequests.automatic
    public var dpop = DPoPUse.off
    /// `offline_access` is requested with `prompt=consent` (OpenID Connect Core section 11).
    public var asksConsentForOfflineAccess = false
    /// How tokens are requested without a user; nil if users sign in.
    public var grant: ServiceGrant?
    /// For an account at an MCP server: what the server and its issuer have announced.
    var mcp: MCPConnection?

    public init(endpoints: Account.Endpoints) { self.endpoints = endpoints }
}

extension OAuthAccount: AccountKind {
    public func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider {
        let provider = Provider(account, by: self, tools)
        if let grant { return ServiceProvider(provider: provider, grant: grant) }
        return OAuthProvider(provider: provider)
    }

    public func binding(of account: Account) -> SessionBinding {
        switch endpoints {
        case .issuer(let issuer): return SessionBinding(provider: issuer, clientID: account.clientID)
        case .fixed(let metadata):
            // A configured token endpoint may change while the issuer stays the same.
            let origin = (try? WebURL(parsing: metadata.tokenEndpoint))?.origin ?? ""
            return SessionBinding(
                provider: metadata.issuer.map { "\($0) \(origin)" } ?? origin, clientID: account.clientID)
        }
    }

    public func bindingID(of account: Account) -> String {
        let binding = binding(of: account)
        return grant?.bindingID(binding, of: account) ?? binding.text
    }

    public func issuer(of account: Account) -> String? {
        switch endpoints {
        case .issuer(let issuer): issuer
        case .fixed(let metadata): metadata.issuer
        }
    }

    public var needsSignIn: Bool { grant == nil }
    public var upstream: AccountName? { grant?.through }

    public func configuredSession(of account: Account, by clock: BrokerClock) -> Session? {
        grant == nil ? nil : .ofService(account, by: clock)
    }

    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {
        guard let grant, query.kind == .idToken else { return }
        throw .methodUnsupported(.stated("\(account.name) is a service (\(grant.word)), which has no ID tokens."))
    }

    /// Reads the file or the credential that the setting names.
    public func isUsable(_ setting: UnusableSetting) async -> Bool {
        guard let named = CredentialSetting(rawValue: setting.setting) else { return false }
        do throws(BrokerError) {
            switch named {
            case .secretFile, .secretCredential: return try await clientSecret?.fetch() != nil
            case .keyFile: return try await clientKey?.fetch() != nil
            case .assertionFile:
                let use = AssertionUse(audience: "", resource: nil, scopes: [])
                return try await grant?.assertion?.fetch(use) != nil
            }
        } catch {
            return false
        }
    }

    public func renewalAdvice(of account: Account) -> Reason? {
        let asksForConsent = account.authorizationParameters.contains { $0 == ("prompt", "consent") }
        switch account.configuredProvider {
        case .google?: return asksForConsent ? nil : .oauth(.tokenAtFirstConsent)
        case .oidc?, .microsoft?:
            guard account.scopes.contains("offline_access") else {
                return .stated("Most providers issue one for the scope offline_access.")
            }
            if asksForConsent || asksConsentForOfflineAccess && account.scopes.contains("openid") { return nil }
            return .stated(
                "Some providers issue one only after the user's consent: set offline_access_consent = true.")
        case .oauth2?, nil: return nil
        }
    }
}

private enum CredentialSetting: String {
    case secretFile = "client_secret_file"
    case secretCredential = "client_secret_credential"
    case keyFile = "client_key_file"
    case assertionFile = "assertion_file"
}

/// The provider names of the configuration that this target treats differently.
enum ConfiguredProvider: String {
    /// A provider with an issuer's metadata, and one with configured endpoints.
    case oidc, oauth2
    case google, microsoft
}

extension Account {
    var configuredProvider: ConfiguredProvider? { ConfiguredProvider(rawValue: provider) }

    public enum Endpoints: Sendable, Equatable {
        case issuer(String)
        case fixed(ProviderMetadata)
    }

    /// Where the client secret comes from. It is called for every use, so the source decides what it caches.
    public struct SecretSource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> Secret
        /// Requests a new secret from the provider if the secret has expired.
        var renew: (@Sendable (any HTTPClient, ProviderDirectory) async throws(BrokerError) -> Secret)?

        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> Secret) { self.fetch = fetch }
    }

    /// Where the client's private key comes from. It is called for every use.
    public struct KeySource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> ClientKey
        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> ClientKey) { self.fetch = fetch }
    }

    /// Reading them from an account of another kind is a programming error that ends the process.
    public var oauth: OAuthAccount {
        get {
            guard let rules = kind as? OAuthAccount else { preconditionFailure(name.rawValue) }
            return rules
        }
        set { kind = newValue }
    }
}

public enum OAuthMethod: String, Sendable, CaseIterable {
    case browser
    /// With a code that is entered on another device (RFC 8628). Not every provider offers it.
    case device
    /// With the refresh token of another program's session.
    case session

    public init?(_ method: SignInMethod) { self.init(rawValue: method.rawValue) }

    public var method: SignInMethod { SignInMethod(rawValue: rawValue) }
}

extension SignInRequest {
    public static var reservedParameters: Set<String> { AuthorizationRequest.reservedParameters }
}
