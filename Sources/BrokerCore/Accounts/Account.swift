public import HTTPMessages
public import OAuth
public import Secrets
internal import SupabaseAuth

/// The name of an account: `[a-z0-9][a-z0-9._-]{0,63}`.
public struct AccountName: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let rawValue: String

    /// Nil if the text is not a name.
    public init?(_ text: String) {
        let bytes = text.utf8
        guard let first = bytes.first, bytes.count <= 64, AccountName.isAlphanumeric(first),
            bytes.allSatisfy({ AccountName.isAlphanumeric($0) || "._-".utf8.contains($0) })
        else { return nil }
        rawValue = text
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (byte >= 0x61 && byte <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
    }

    public var description: String { rawValue }
    public static func < (left: AccountName, right: AccountName) -> Bool { left.rawValue < right.rawValue }
}

/// What a session belongs to. It is never sent anywhere else.
public struct SessionBinding: Hashable, Sendable {
    /// The issuer; for endpoints by hand the token endpoint's origin, after the issuer if one is named.
    public let provider: String
    public let clientID: String

    public init(provider: String, clientID: String) {
        self.provider = provider
        self.clientID = clientID
    }

    /// Reads ``text``; nil if it is none.
    init?(parsing text: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), let length = Int(text[..<colon]) else {
            return nil
        }
        let rest = text.utf8[text.utf8.index(after: colon)...]
        guard length >= 0, length <= rest.count else { return nil }
        provider = String(decoding: rest.prefix(length), as: UTF8.self)
        clientID = String(decoding: rest.dropFirst(length), as: UTF8.self)
    }

    /// Different bindings have different texts: the parts' lengths keep them apart.
    var text: String { "\(provider.utf8.count):\(provider)\(clientID)" }
}

/// An account as the configuration has it now. A flow keeps the one that it began with.
public struct Account: Sendable {
    /// How the provider's endpoints are known.
    public enum Endpoints: Sendable, Equatable {
        /// By discovery at the issuer.
        case issuer(String)
        /// By hand.
        case fixed(ProviderMetadata)
        /// A Supabase project, which has a protocol of its own.
        case project(SupabaseAccount)
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

    public var name: AccountName
    /// `oidc`, `oauth2`, `supabase` or a preset's name.
    public var provider: String
    /// Where it is configured, for people.
    public var source: String
    public var endpoints: Endpoints
    public var clientID: String
    /// Nil: chosen by what the provider offers.
    public var clientAuthentication: ClientAuthentication?
    public var clientSecret: SecretSource?
    /// With one, the client authenticates with `private_key_jwt`.
    public var clientKey: KeySource?
    public var scopes: [String]
    /// As configured; nil for the default, a free port on 127.0.0.1 and `/callback/ACCOUNT`.
    public var redirectURI: String?
    /// `query` or `form_post`; nil leaves it to the provider's usual way, `query`.
    public var responseMode: String?
    /// Every authorization response must carry `iss` (RFC 9207), whatever the metadata say.
    public var requiresIssuerInResponse = false
    public var pushedRequests = PushedRequests.automatic
    /// `offline_access` is asked for with `prompt=consent` (OpenID Connect Core section 11).
    public var asksConsentForOfflineAccess = false
    public var authorizationParameters: [(String, String)]
    /// Seconds that a sign-in may take.
    public var flowTimeout: Int
    public var trust: ServerTrust
    /// Added to every request to the provider.
    public var headers: [(String, String)]
    /// Seconds before its expiry that a token is refreshed; nil for the usual margin.
    public var refreshMargin: Int?
    /// Seconds before the session's own end that its people are warned.
    public var sessionWarnings: [Int]
    /// The way to the provider.
    public var route = HTTPRoute.standard
    /// Where the provider sends the browser after a sign-out there.
    public var postLogoutRedirectURI: String?
    /// How tokens are had without a person; nil where people sign in.
    public var grant: ServiceGrant?

    /// Seconds before the session ends: ten minutes and one minute.
    public static let usualWarnings = [600, 60]

    public init(
        name: AccountName, provider: String, source: String, endpoints: Endpoints, clientID: String,
        clientAuthentication: ClientAuthentication? = nil, clientSecret: SecretSource? = nil,
        clientKey: KeySource? = nil,
        scopes: [String] = [],
        redirectURI: String? = nil, responseMode: String? = nil, authorizationParameters: [(String, String)] = [],
        flowTimeout: Int = 600,
        trust: ServerTrust = .system, headers: [(String, String)] = [], refreshMargin: Int? = nil,
        sessionWarnings: [Int]? = nil
    ) {
        self.name = name
        self.provider = provider
        self.source = source
        self.endpoints = endpoints
        self.clientID = clientID
        self.clientAuthentication = clientAuthentication
        self.clientSecret = clientSecret
        self.clientKey = clientKey
        self.scopes = scopes
        self.redirectURI = redirectURI
        self.responseMode = responseMode
        self.authorizationParameters = authorizationParameters
        self.flowTimeout = flowTimeout
        self.trust = trust
        self.headers = headers
        self.refreshMargin = refreshMargin
        self.sessionWarnings = sessionWarnings ?? Account.usualWarnings
    }

    /// What a session of this account is bound to.
    public var binding: SessionBinding {
        switch endpoints {
        case .issuer(let issuer): return SessionBinding(provider: issuer, clientID: clientID)
        case .fixed(let metadata):
            // By hand, the token endpoint may move while the issuer's name stays.
            let origin = (try? WebURL(parsing: metadata.tokenEndpoint))?.origin ?? ""
            return SessionBinding(provider: metadata.issuer.map { "\($0) \(origin)" } ?? origin, clientID: clientID)
        case .project(let account): return SessionBinding(provider: account.project.authURL, clientID: clientID)
        case .unsupported(let reason): return SessionBinding(provider: reason, clientID: clientID)
        }
    }

    /// The issuer, where there is one.
    public var issuer: String? {
        switch endpoints {
        case .issuer(let issuer): issuer
        case .fixed(let metadata): metadata.issuer
        case .project(let account): account.project.issuer
        case .unsupported: nil
        }
    }
}
