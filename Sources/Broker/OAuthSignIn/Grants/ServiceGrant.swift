public import BrokerCore
public import OAuth

/// How an account gets tokens without a user (RFC 6749 section 4.4, RFC 7522, RFC 7523, RFC 8693). Such an account is
/// signed in by its configuration alone. The vault stores nothing for it; after a restart its tokens are fetched again.
public struct ServiceGrant: Sendable {
    /// Where the assertion, or the subject token, is read from. It is read at every use, since a platform may replace
    /// it at any time.
    public struct AssertionSource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> Assertion
        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> Assertion) { self.fetch = fetch }
    }

    public let type: ServiceGrantType
    /// The type of the assertion, for a token exchange.
    public let subjectType: ExchangedTokenType
    /// Nil for client credentials.
    public let assertion: AssertionSource?
    /// Names the source of the assertion. An account with another source counts as another service.
    public let assertionPlace: String?
    /// The audience of the account's own token; callers may name others.
    public let audience: String?
    /// The resource (RFC 8707) of the account's own token.
    public let resource: String?

    public init(
        _ type: ServiceGrantType, subjectType: ExchangedTokenType = .jwt, assertion: AssertionSource? = nil,
        assertionPlace: String? = nil, audience: String? = nil, resource: String? = nil
    ) {
        self.type = type
        self.subjectType = subjectType
        self.assertion = assertion
        self.assertionPlace = assertionPlace
        self.audience = audience
        self.resource = resource
    }

    /// The name of the grant in the configuration.
    public var word: String { type.rawValue }
}

extension AccountView {
    /// The name of the grant in the configuration, for an account that gets tokens without a user; nil where users sign
    /// in.
    public var grant: String? { (kind as? OAuthAccount)?.grant?.word }
}

extension Session {
    /// The session of a service. It exists because the account is configured, and has no tokens until a caller asks for
    /// one.
    static func ofService(_ account: Account, by clock: BrokerClock) -> Session {
        var session = Session(
            refreshToken: nil, identity: nil, subject: nil, user: nil,
            scope: account.scopes.isEmpty ? nil : account.scopes.joined(separator: " "),
            issuer: account.issuer ?? account.binding.provider, tokenEndpointOrigin: "", signedInAt: clock.wallInstant,
            end: nil, rotation: .unknown, tokens: [:])
        session.keeping = .configuration
        return session
    }
}
