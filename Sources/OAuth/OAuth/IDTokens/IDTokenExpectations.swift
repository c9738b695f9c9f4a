public import Cryptography
public import Secrets
internal import StrictJSON

/// The values that an ID token must match.
public struct IDTokenExpectations: Sendable {
    /// The values of the sign-in's ID token that a refreshed one must repeat (OpenID Connect Core section 12.2).
    public struct Previous: Sendable {
        public var subject: String
        /// `iss`; nil if it is unknown. Needed only if ``IDTokenExpectations/issuer`` is a template.
        public var issuer: String?
        public var audience: Set<String>
        /// `auth_time` in Unix seconds; nil if it had none.
        public var authenticationTime: Int?
        /// `azp`; nil if it had none.
        public var authorizedParty: String?
        /// `nonce`; nil if it had none or it is unknown.
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

        /// The values of this token.
        public init(_ token: IDToken) {
            self.init(
                subject: token.subject, audience: token.audience, authenticationTime: token.authenticationTime,
                authorizedParty: token.authorizedParty, nonce: token.claims["nonce"]?.string.map { Secret($0) },
                issuer: token.issuer
            )
        }
    }

    /// The provider's issuer, compared byte for byte, or its template, see ``ProviderMetadata/idTokenIssuer``.
    public var issuer: String
    /// Our client identifier at the provider.
    public var clientID: String
    /// The nonce of the request; nil if none was sent, as for a refresh.
    public var nonce: Secret?
    /// The current time in Unix seconds.
    public var now: Int
    /// The allowed difference of the provider's clock in seconds, limited to 0...300.
    public var leeway: Int
    /// The access token of the same response, for `at_hash`.
    public var accessToken: Secret?
    /// The authorization code, for `c_hash`.
    public var code: Secret?
    /// For a refresh: values of the earlier token.
    public var previous: Previous?
    /// The required subject if there is no earlier token; nil for any.
    public var subject: String?
    /// The algorithms from the provider's metadata, never from a token's header.
    public var allowedAlgorithms: Set<SignatureAlgorithm>
    /// The requested `max_age` in seconds. `auth_time` must then be present and recent enough.
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

    /// The leeway in use. If a clock is wrong by more than five minutes, that is reported as an error.
    var boundedLeeway: Int { min(max(leeway, 0), 300) }
}
