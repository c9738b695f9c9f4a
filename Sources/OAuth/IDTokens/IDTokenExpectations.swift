public import Cryptography
public import Secrets
internal import StrictJSON

/// What an ID token must agree with: what we asked for and what came beside it.
public struct IDTokenExpectations: Sendable {
    /// What a refreshed ID token must share with the one of the sign-in (OpenID Connect Core section 12.2).
    public struct Previous: Sendable {
        public var subject: String
        /// `iss`; nil where it is no longer known. It only matters where ``IDTokenExpectations/issuer`` is a template.
        public var issuer: String?
        public var audience: Set<String>
        /// `auth_time` in Unix seconds; nil if it had none.
        public var authenticationTime: Int?
        /// `azp`; nil if it had none.
        public var authorizedParty: String?
        /// `nonce`; nil if it had none or it is no longer known.
        public var nonce: Secret?

        public init(
            subject: String, audience: Set<String>, authenticationTime: Int? = nil, authorizedParty: String? = nil,
            nonce: Secret? = nil, issuer: String? = nil
        ) {
            self.subject = subject
            self.issuer = issuer
            self.audience = audience
            self.authenticationTime = authenticationTime
            self.authorizedParty = authorizedParty
            self.nonce = nonce
        }

        /// What a refresh must agree with after this token.
        public init(_ token: IDToken) {
            self.init(
                subject: token.subject, audience: token.audience, authenticationTime: token.authenticationTime,
                authorizedParty: token.authorizedParty, nonce: token.claims["nonce"]?.string.map { Secret($0) },
                issuer: token.issuer
            )
        }
    }

    /// The provider's issuer, compared byte for byte; or its template, see ``ProviderMetadata/idTokenIssuer``.
    public var issuer: String
    /// Our client identifier there.
    public var clientID: String
    /// The nonce that was sent; nil if none was, as on refresh.
    public var nonce: Secret?
    /// Unix seconds.
    public var now: Int
    /// How far the provider's clock may differ, in seconds; beyond 0...300 the nearer end counts.
    public var leeway: Int
    /// The access token of the same answer, for `at_hash`.
    public var accessToken: Secret?
    /// The authorization code, for `c_hash`.
    public var code: Secret?
    /// On refresh: the token before.
    public var previous: Previous?
    /// Whom it must be about where no token came before; nil if anybody may sign in.
    public var subject: String?
    /// What the provider says that it signs with. Never what a token's header says.
    public var allowedAlgorithms: Set<SignatureAlgorithm>
    /// The `max_age` that was asked for, in seconds: then `auth_time` must be there and no older.
    public var maxAge: Int?

    public init(
        issuer: String, clientID: String, nonce: Secret? = nil, now: Int, leeway: Int = 120,
        accessToken: Secret? = nil, code: Secret? = nil, previous: Previous? = nil,
        allowedAlgorithms: Set<SignatureAlgorithm> = [.rs256], maxAge: Int? = nil
    ) {
        self.issuer = issuer
        self.clientID = clientID
        self.nonce = nonce
        self.now = now
        self.leeway = leeway
        self.accessToken = accessToken
        self.code = code
        self.previous = previous
        self.allowedAlgorithms = allowedAlgorithms
        self.maxAge = maxAge
    }

    /// The leeway as it is used. A clock more than five minutes off is a mistake to be told, not one to be allowed for.
    var boundedLeeway: Int { min(max(leeway, 0), 300) }
}
