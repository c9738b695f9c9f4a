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
    /// ``scope`` is the provider's own word; else it is what was asked for, as RFC 6749 section 5.1 has it.
    public var isScopeStated = false
    /// Nil where the provider states no lifetime.
    public var expiry: Deadline?
    /// Seconds that the provider gave it; nil where it states none.
    public var lifetime: Int?

    /// Whole seconds left, never negative; nil for an unknown lifetime.
    public func remaining(at boot: BootInstant) -> Int? { expiry?.remaining(at: boot) }

    /// True if a refresh would not be asked for by a caller who wants `minValid` seconds.
    func satisfies(minValid: Int, at boot: BootInstant) -> Bool {
        guard let remaining = remaining(at: boot) else { return true }
        if let lifetime, minValid >= lifetime { return remaining > 0 && remaining * 2 >= lifetime }
        return remaining >= minValid && remaining > 0
    }
}

/// What a sign-in yields and refreshes renew: a lineage of refresh tokens, who it belongs to, and
/// the access tokens by key.
public struct Session: Sendable, Equatable {
    /// The ID token and what a later one must agree with.
    public struct Identity: Sendable, Equatable {
        public var token: Secret
        public var expiry: Deadline
        /// Seconds from its issue to its expiry; nil if they make no sense.
        public var lifetime: Int?
        public var audience: [String]
        public var authenticationTime: Int?
        public var authorizedParty: String?
        public var nonce: Secret?
        /// `iss`, which only a place that several issuers share leaves open; nil where it is not known any more.
        public var issuer: String?
        /// What the nonce of the sign-in is the SHA-256 of; nil for sign-ins without one.
        public var nonceSource: Secret?
    }

    /// The last refresh token whose answer was validated.
    public var refreshToken: Secret?
    /// One that came in a response which was not validated, or with a downscoped token; presented first.
    public var unvalidatedRefreshToken: Secret?
    /// The one that was presented when ``unvalidatedRefreshToken`` came, if it is not ``refreshToken`` itself: no response
    /// to it was validated either.
    public var presentedRefreshToken: Secret?
    /// The scope of the downscoped token that ``unvalidatedRefreshToken`` came with: it may be good for no more than that.
    public var downscopedTo: String?
    public var identity: Identity?
    public var subject: String?
    /// Claims about the person, of ID token and userinfo.
    public var user: JSONObject?
    public var scope: String?
    /// What the session was good for until a downscoped token was requested; a sign-in brings it back. Sorted.
    public var lostScopes: [String] = []
    /// A downscoped token cost this session, or one before it, some of its scopes: the provider is not asked for one again.
    public var refusesDownscoping = false
    /// The issuer, or the token endpoint's origin.
    public var issuer: String
    /// Where the refresh token may be sent, and nowhere else.
    public var tokenEndpointOrigin: String
    public var signedInAt: Int
    /// When the session itself ends, where the provider says so; nothing renews it after that.
    public var end: Deadline?
    /// True if the last refresh brought a new refresh token, false if it did not; nil before the first one.
    public var rotates: Bool?
    public var tokens: [TokenKey: AccessToken]
    /// Why the ID token of the last refresh was dropped, if it was. Not kept in the vault.
    public var idTokenOddity: BrokerError?
    /// At a Supabase project alone.
    public var project: SupabaseFacts?
    /// Of no person: the next token is fetched as the first was.
    public var isOfService = false

    /// Narrowed tokens are asked for anew: dead ones, and more than a session can reasonably carry, would only pile up
    /// until the vault takes nothing any more.
    mutating func dropTokens(at boot: BootInstant, butFor asked: TokenKey) {
        tokens = tokens.filter { $0.key == .own || $0.value.remaining(at: boot) != 0 }
        var size = tokens.values.reduce(0) { $0 + $1.value.count }
        let downscoped = tokens.filter { $0.key != .own && $0.key != asked }
        var count = downscoped.count
        for (key, token) in downscoped.sorted(by: { $0.value.expiry?.boot ?? .never < $1.value.expiry?.boot ?? .never })
        {
            guard count >= Session.maxDownscopedTokens || size > Session.maxTokenBytes else { return }
            tokens[key] = nil
            count -= 1
            size -= token.value.count
        }
    }

    private static let maxDownscopedTokens = 32
    private static let maxTokenBytes = 256 << 10

    var isRefreshable: Bool { unvalidatedRefreshToken != nil || refreshToken != nil || isOfService }
}
