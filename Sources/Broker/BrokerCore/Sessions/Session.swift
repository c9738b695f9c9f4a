public import RingbackBase

/// Names an access token of a session: downscoped to scopes, an audience or a resource, or (all nil) the session's own.
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

/// An access token, as it is issued to callers.
public struct AccessToken: Sendable, Equatable {
    public var value: Secret
    public var type: String
    public var scope: String?
    /// True if the provider stated ``scope``. Else it is the scope that was requested (RFC 6749 section 5.1).
    public var isScopeStated = false
    /// Nil where the provider states no lifetime.
    public var expiry: Deadline?
    /// The lifetime that the provider stated; nil where it states none.
    public var lifetime: Duration?

    public init(
        value: Secret, type: String, scope: String?, isScopeStated: Bool = false, expiry: Deadline? = nil,
        lifetime: Duration? = nil
    ) {
        self.value = value
        self.type = type
        self.scope = scope
        self.isScopeStated = isScopeStated
        self.expiry = expiry
        self.lifetime = lifetime
    }

    /// The time that is left, in whole seconds, never negative; nil for an unknown lifetime.
    public func remaining(at boot: BootInstant) -> Duration? { expiry?.remaining(at: boot) }

    /// True if a caller who wants it valid for `minValid` needs no refresh. If that is more than the token's lifetime,
    /// half of the lifetime is enough.
    func satisfies(minValid: Duration, at boot: BootInstant) -> Bool {
        guard let remaining = remaining(at: boot) else { return true }
        if let lifetime, minValid >= lifetime { return remaining > .zero && remaining * 2 >= lifetime }
        return remaining >= minValid && remaining > .zero
    }
}

/// What a sign-in yields and refreshes renew: a token family, its subject, and the access tokens by key.
public struct Session: Sendable, Equatable {
    /// The ID token, and the values that a later one must match.
    public struct Identity: Sendable, Equatable {
        public var token: Secret
        public var expiry: Deadline
        /// From its issue to its expiry; nil if the expiry is not after the issue.
        public var lifetime: Duration?
        public var audience: [String]
        public var authenticationTime: WallInstant?
        public var authorizedParty: String?
        public var nonce: Secret?
        /// `iss`. It differs from the configured issuer only where several issuers share a provider. Nil if it is not
        /// known any more.
        public var issuer: String?
        /// The value whose SHA-256 is the nonce of the sign-in; nil for sign-ins without one.
        public var nonceSource: Secret?

        public init(
            token: Secret, expiry: Deadline, lifetime: Duration?, audience: [String],
            authenticationTime: WallInstant?,
            authorizedParty: String?, nonce: Secret?, issuer: String?, nonceSource: Secret?
        ) {
            self.token = token
            self.expiry = expiry
            self.lifetime = lifetime
            self.audience = audience
            self.authenticationTime = authenticationTime
            self.authorizedParty = authorizedParty
            self.nonce = nonce
            self.issuer = issuer
            self.nonceSource = nonceSource
        }
    }

    /// A refresh token that came in a response which was not validated, or with a downscoped token.
    public struct Unvalidated: Sendable, Equatable {
        public var token: Secret
        /// The refresh token that was presented when ``token`` came, if it is not ``Session/refreshToken``: no response
        /// to it was validated either.
        public var presented: Secret?

        public init(_ token: Secret, presented: Secret? = nil) {
            self.token = token
            self.presented = presented
        }
    }

    /// Where a session is kept, and for how long.
    public enum Keeping: Sendable, Equatable {
        /// In the vault, across starts of the daemon.
        case vault
        /// In memory only, until the daemon ends: the caller asked that it is not written.
        case memory
        /// Not written: the configuration makes it again at each start. Its tokens are renewed without a refresh token.
        case configuration
    }

    /// Whether the last refresh brought a new refresh token.
    public enum Rotation: Sendable, Equatable {
        /// There was no refresh yet.
        case unknown
        case rotates, keeps
    }

    /// The last refresh token whose response was validated.
    public var refreshToken: Secret?
    /// A newer refresh token, which is presented first; nil where the last response was validated.
    public var unvalidated: Unvalidated?
    public var identity: Identity?
    public var subject: String?
    /// Claims about the user, from the ID token and userinfo.
    public var user: JSONObject?
    public var scope: String?
    /// The scopes that the session lost when a downscoped token was requested, sorted. A sign-in brings them back.
    public var lostScopes: [String] = []
    /// The scope of the downscoped token that was requested last. The newest refresh token may cover no more than that,
    /// until a refresh of the session's own token has shown its scopes; nil if that has been shown.
    public var downscopedTo: String?
    /// The issuer, or the token endpoint's origin.
    public var issuer: String
    /// The only origin that the refresh token may be sent to.
    public var tokenEndpointOrigin: String
    public var signedInAt: WallInstant
    /// When the session itself ends, where the provider says so. After that a refresh does not help.
    public var end: Deadline?
    public var rotation: Rotation
    public var tokens: [TokenKey: AccessToken]
    /// Why the ID token of the last refresh was dropped, if it was. Not kept in the vault.
    public var idTokenOddity: BrokerError?
    /// The attachments, by the name of the kind of account.
    public var attachments: [String: SessionAttachment] = [:]
    public var keeping = Keeping.vault

    public init(
        refreshToken: Secret?, unvalidated: Unvalidated? = nil, identity: Identity?, subject: String?,
        user: JSONObject?, scope: String?, issuer: String, tokenEndpointOrigin: String, signedInAt: WallInstant,
        end: Deadline?, rotation: Rotation, tokens: [TokenKey: AccessToken]
    ) {
        self.refreshToken = refreshToken
        self.unvalidated = unvalidated
        self.identity = identity
        self.subject = subject
        self.user = user
        self.scope = scope
        self.issuer = issuer
        self.tokenEndpointOrigin = tokenEndpointOrigin
        self.signedInAt = signedInAt
        self.end = end
        self.rotation = rotation
        self.tokens = tokens
    }

    /// Drops downscoped tokens that have expired, and if there are too many those that expire first. They can be
    /// requested again. Without a limit the record would grow until the vault refuses it.
    mutating func dropTokens(at boot: BootInstant, butFor asked: TokenKey) {
        tokens = tokens.filter { $0.key == .own || $0.value.remaining(at: boot) != .zero }
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

    public var isRefreshable: Bool { unvalidated != nil || refreshToken != nil || isConfigured }
    /// Kept in memory only. It ends when the daemon stops.
    public var isEphemeral: Bool { keeping != .vault }
    /// The configuration made it, and no sign-in.
    public var isConfigured: Bool { keeping == .configuration }
}

/// Is told what happens to sessions, and does what only one kind of account needs. The session manager does not know
/// what an observer does.
public protocol SessionObserver: Sendable {
    /// A session has been opened, in the place of `former` if there was one. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: another operation than a sign-in opened it.
    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async

    /// A session has changed. Called in the turn of the account's lane.
    ///
    /// - Parameter isAsked: the change was an operation that may change the user's identities.
    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async

    /// A session is about to leave its lane. Called in the turn of the account's lane.
    func leaving(_ session: Session, of account: Account) async

    /// An event is about to be posted. Called in the same turn as the change that it reports.
    func willPost(_ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionAccess)

    /// The account was removed, or its session can no longer be read.
    func forget(_ account: AccountName)
}

/// Checks what is requested of a downscoped token, before any request to a provider.
extension TokenKey {
    private static let maxScopes = 100

    /// The first parameter that cannot be sent, and why; nil if all can be.
    public var mistake: (parameter: String, reason: RequestReason)? {
        if let scopes, scopes.count > TokenKey.maxScopes || !scopes.allSatisfy(TokenDownscoping.isScope) {
            return ("scope", .scopes(most: TokenKey.maxScopes))
        }
        if let audience, !TokenDownscoping.isAudience(audience) {
            return ("audience", .textWithoutControls)
        }
        if let resource, !TokenDownscoping.isResource(resource) {
            return ("resource", .absoluteURI)
        }
        return nil
    }
}
