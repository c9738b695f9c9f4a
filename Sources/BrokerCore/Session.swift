internal import OAuth
public import Secrets
public import StrictJSON

/// Which access token of a session: narrowed to scopes, an audience or a resource, or (all nil) the session's own.
public struct TokenKey: Hashable, Sendable {
    /// Sorted, without duplicates.
    public let scopes: [String]?
    public let audience: String?
    public let resource: String?

    public init(scopes: [String]? = nil, audience: String? = nil, resource: String? = nil) {
        self.scopes = scopes.flatMap { $0.isEmpty ? nil : Array(Set($0)).sorted() }
        self.audience = audience
        self.resource = resource
    }

    /// The token that the sign-in itself yielded.
    public static let own = TokenKey()
}

/// A short-lived token, as it is handed out.
public struct AccessToken: Sendable, Equatable {
    public var value: Secret
    public var type: String
    public var scope: String?
    /// Unix seconds; nil where the provider states no lifetime.
    public var expiresAt: Int?
    /// Seconds that the provider gave it; nil where it states none.
    public var lifetime: Int?

    /// Seconds left, never negative; nil for an unknown lifetime.
    func remaining(at now: Int) -> Int? { expiresAt.map { max($0 - now, 0) } }

    /// True if a refresh would not be asked for by a caller who wants `minValid` seconds (CONTRACT section 4).
    func satisfies(minValid: Int, at now: Int) -> Bool {
        guard let remaining = remaining(at: now) else { return true }
        if let lifetime, minValid >= lifetime { return remaining > 0 && remaining * 2 >= lifetime }
        return remaining >= minValid && remaining > 0
    }
}

/// What a sign-in yields and refreshes renew (DESIGN section 2a): a lineage of refresh tokens, who it belongs to, and
/// the access tokens by key.
public struct Session: Sendable, Equatable {
    /// The ID token and what a later one must agree with.
    public struct Identity: Sendable, Equatable {
        public var token: Secret
        public var expiresAt: Int
        /// Seconds from its issue to its expiry; nil if they make no sense.
        public var lifetime: Int?
        public var audience: [String]
        public var authenticationTime: Int?
        public var authorizedParty: String?
        public var nonce: Secret?
    }

    /// The last refresh token whose answer was validated.
    public var refreshToken: Secret?
    /// One that came in an answer which was not validated; presented first.
    public var successor: Secret?
    public var identity: Identity?
    public var subject: String?
    /// Claims about the person, of ID token and userinfo.
    public var user: JSONObject?
    public var scope: String?
    /// The issuer, or the token endpoint's origin.
    public var issuer: String
    /// Where the refresh token may be sent, and nowhere else.
    public var tokenEndpointOrigin: String
    public var signedInAt: Int
    public var tokens: [TokenKey: AccessToken]

    /// The refresh tokens worth presenting: newer first.
    var refreshTokens: [Secret] { [successor, refreshToken].compactMap { $0 } }

    var isRefreshable: Bool { successor != nil || refreshToken != nil }
}
