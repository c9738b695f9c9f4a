public import BrokerCore
public import OAuth

/// How an account gets tokens without a person (RFC 6749 section 4.4, RFC 7523, RFC 8693). Such an account is signed in
/// by its configuration alone; the vault holds nothing of it, and a restart just fetches again.
public struct ServiceGrant: Sendable {
    public enum Kind: Sendable, Equatable {
        case clientCredentials
        case jwtBearer
        /// What the subject token is.
        case tokenExchange(ExchangedTokenType)
    }

    /// Where the assertion, or the subject token, comes from. Asked at every use: a platform replaces it whenever it
    /// likes.
    public struct AssertionSource: Sendable {
        public let fetch: @Sendable () async throws(BrokerError) -> Assertion
        public init(fetch: @escaping @Sendable () async throws(BrokerError) -> Assertion) { self.fetch = fetch }
    }

    public let kind: Kind
    /// Nil for client credentials, which need none.
    public let assertion: AssertionSource?
    /// Names the place of the assertion, so that another place is known to be another service.
    public let assertionPlace: String?
    /// What the account's own token is for; callers may name others.
    public let audience: String?
    /// RFC 8707.
    public let resource: String?

    public init(
        kind: Kind, assertion: AssertionSource? = nil, assertionPlace: String? = nil, audience: String? = nil,
        resource: String? = nil
    ) {
        self.kind = kind
        self.assertion = assertion
        self.assertionPlace = assertionPlace
        self.audience = audience
        self.resource = resource
    }

    /// As the configuration calls it.
    public var word: String {
        switch kind {
        case .clientCredentials: "client_credentials"
        case .jwtBearer: "jwt_bearer"
        case .tokenExchange: "token_exchange"
        }
    }
}

extension Session {
    /// The session of a service: there because the account is configured, without tokens until somebody asks for one.
    static func ofService(_ account: Account, by clock: BrokerClock) -> Session {
        var session = Session(
            refreshToken: nil, unvalidatedRefreshToken: nil, identity: nil, subject: nil, user: nil,
            scope: account.scopes.isEmpty ? nil : account.scopes.joined(separator: " "),
            issuer: account.issuer ?? account.binding.provider, tokenEndpointOrigin: "", signedInAt: clock.now(),
            end: nil, rotates: nil, tokens: [:])
        session.isOfService = true
        session.isEphemeral = true
        return session
    }
}
