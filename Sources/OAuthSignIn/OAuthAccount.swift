public import BrokerCore
internal import HTTPMessages
public import OAuth
public import Secrets

/// What the configuration says of an account at a provider of OAuth or OpenID Connect.
public struct OAuthAccount: Sendable {
    public var endpoints: Account.Endpoints
    /// Nil: chosen by what the provider offers.
    public var clientAuthentication: ClientAuthentication?
    public var clientSecret: Account.SecretSource?
    /// With one, the client authenticates with `private_key_jwt`.
    public var clientKey: Account.KeySource?
    /// `query` or `form_post`; nil leaves it to the provider's usual way, `query`.
    public var responseMode: String?
    /// Every authorization response must carry `iss` (RFC 9207), whatever the metadata say.
    public var requiresIssuerInResponse = false
    public var pushedRequests = Account.PushedRequests.automatic
    /// `offline_access` is asked for with `prompt=consent` (OpenID Connect Core section 11).
    public var asksConsentForOfflineAccess = false
    /// How tokens are had without a user; nil where users sign in.
    public var grant: ServiceGrant?

    public init(endpoints: Account.Endpoints) { self.endpoints = endpoints }
}

extension OAuthAccount: AccountKind {
    public func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider {
        let provider = Provider(
            account: account, rules: self, http: tools.http, directory: tools.memory(), clock: tools.clock)
        if let grant { return ServiceProvider(provider: provider, grant: grant) }
        return OAuthProvider(provider: provider)
    }

    public func binding(of account: Account) -> SessionBinding {
        switch endpoints {
        case .issuer(let issuer): return SessionBinding(provider: issuer, clientID: account.clientID)
        case .fixed(let metadata):
            // By hand, the token endpoint may move while the issuer's name stays.
            let origin = (try? WebURL(parsing: metadata.tokenEndpoint))?.origin ?? ""
            return SessionBinding(
                provider: metadata.issuer.map { "\($0) \(origin)" } ?? origin, clientID: account.clientID)
        case .unsupported(let reason): return SessionBinding(provider: reason, clientID: account.clientID)
        }
    }

    /// Tokens that a service fetched for other scopes, or by another assertion, are not this one's.
    public func bindingID(of account: Account) -> String {
        let binding = binding(of: account)
        guard let grant else { return binding.text }
        var parts = [grant.word, binding.text] + account.scopes.sorted()
        parts += [grant.audience, grant.resource, grant.assertionPlace].map { $0 ?? "" }
        if case .tokenExchange(let type) = grant.kind { parts.append(type.uri) }
        return parts.map { "\($0.utf8.count):\($0)" }.joined()
    }

    public func issuer(of account: Account) -> String? {
        switch endpoints {
        case .issuer(let issuer): issuer
        case .fixed(let metadata): metadata.issuer
        case .unsupported: nil
        }
    }

    public var needsSignIn: Bool { grant == nil }

    public func configuredSession(of account: Account, by clock: BrokerClock) -> Session? {
        grant == nil ? nil : .ofService(account, by: clock)
    }

    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {
        guard let grant, query.kind == .idToken else { return }
        throw .methodUnsupported("\(account.name) is a service (\(grant.word)), for which there are no ID tokens.")
    }

    public func renewalAdvice(of account: Account) -> String? {
        let asksForConsent = account.authorizationParameters.contains { $0 == ("prompt", "consent") }
        switch account.provider {
        case "google":
            return asksForConsent
                ? nil
                : "Google gives one with a person's first consent only: add authorization_params = "
                    + "{ prompt = \"consent\" } to the account and sign in once more."
        case "oidc", "microsoft":
            guard account.scopes.contains("offline_access") else {
                return "Most providers give one for the scope offline_access."
            }
            let isConsentAsked =
                asksForConsent || (asksConsentForOfflineAccess && account.scopes.contains("openid"))
            return isConsentAsked
                ? nil : "Some providers give one after the user's consent only: set offline_access_consent = true."
        default: return nil
        }
    }
}

extension Account {
    /// How the provider's endpoints are known.
    public enum Endpoints: Sendable, Equatable {
        /// By discovery at the issuer.
        case issuer(String)
        /// By hand.
        case fixed(ProviderMetadata)
        /// The provider needs a kind of sign-in that this version does not have; the sentence says which.
        case unsupported(String)
    }

    /// Where the client secret comes from. Asked at every use, so that a source decides itself what it keeps.
    public struct SecretSource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> Secret
        /// Asks the provider for another one in place of a secret that has expired.
        var renew: (@Sendable (any HTTPClient, ProviderDirectory) async throws(BrokerError) -> Secret)?

        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> Secret) { self.fetch = fetch }
    }

    /// Where the client's private key comes from, for `private_key_jwt`. Asked at every use, too.
    public struct KeySource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> ClientKey
        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> ClientKey) { self.fetch = fetch }
    }

    /// Whether authorization requests are pushed (RFC 9126).
    public enum PushedRequests: Sendable {
        /// Where the metadata offer it. If it fails and is not required there, the request goes through the browser.
        case automatic
        case never
        /// Always: without it there is no sign-in.
        case required
    }
}

extension Account {
    /// The rules of this kind. Reading them of an account of another kind ends the process.
    public var oauth: OAuthAccount {
        get {
            guard let rules = kind as? OAuthAccount else { preconditionFailure("\(name) is no account of this kind") }
            return rules
        }
        set { kind = newValue }
    }
}
