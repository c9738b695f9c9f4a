public import RingbackBase

/// Names an access token of a session: downscoped to scopes, an audience or a resource, or (all nil) the session's own.
public struct TokenKey: Hashable, Sendable {
    public let scopes: [String]?
    public let audience: String?
    public let resource: String?
    /// It is no access token, but an assertion about the session's user, which only the broker's other accounts use. It is
    /// held in memory alone.
    public let isAssertion: Bool

    public init(
        scopes: [String]? = nil, audience: String? = nil, resource: String? = nil, isAssertion: Bool = false
    ) {
        self.scopes = scopes.flatMap { $0.isEmpty ? nil : Array(Set($0)).sorted() }
        self.audience = audience
        self.resource = resource
        self.isAssertion = isAssertion
    }

    public static let own = TokenKey()
}

public struct AccessToken: Sendable, Equatable {
    public var value: Secret
    public var type: String
    public var scope: String?
    /// True if the provider stated ``scope``. Else it is the scope that was requested (RFC 6749 section 5.1).
    public var isScopeStated = false
    public var expiry: Deadline?
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

    /// True if a server takes it only with a proof of the session's key (RFC 9449 section 7.1).
    public var isBound: Bool { type == "DPoP" }

    /// The time that is left, in whole seconds, never negative; nil for an unknown lifetime.
    public func remaining(at boot: BootInstant) -> Duration? { expiry?.remaining(at: boot) }

    /// True if a caller who wants it valid for `minValid` needs no refresh: half of a shorter lifetime is enough.
    func satisfies(minValid: Duration, at boot: BootInstant) -> Bool {
        guard let remaining = remaining(at: boot) else { return true }
        if let lifetime, minValid >= lifetime { return remaining > .zero && remaining * 2 >= lifetime }
        return remaining >= minValid && remaining > .zero
    }
}

/// A signed-in user's token family, its subject, and the access tokens by key.
public struct Session: Sendable, Equatable {
    public struct Identity: Sendable, Equatable {
        public var token: Secret
        public var expiry: Deadline
        /// From its issue to its expiry; nil if the expiry is not after the issue.
        public var lifetime: Duration?
        public var audience: [String]
        public var authenticationTime: WallInstant?
        public var authorizedParty: String?
        public var nonce: Secret?
        /// `iss`, which may differ where several issuers share a provider; nil if it is not known any more.
        public var issuer: String?
        /// The value whose SHA-256 is the nonce of the sign-in; nil for sign-ins without one.
        public var nonceSource: Secret?

        public init(token: Secret, expiry: Deadline, lifetime: Duration?, audience: [String]) {
            self.token = token
            self.expiry = expiry
            self.lifetime = lifetime
            self.audience = audience
        }
    }

    /// A refresh token that came in a response which was not validated, or with a downscoped token.
    public struct Unvalidated: Sendable, Equatable {
        public var token: Secret
        /// What was presented when ``token`` came, if not ``Session/refreshToken``: no response to it was validated.
        public var presented: Secret?

        public init(_ token: Secret, presented: Secret? = nil) {
            self.token = token
            self.presented = presented
        }
    }

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
        case unknown
        case rotates, keeps
    }

    /// The last refresh token whose response was validated.
    public var refreshToken: Secret?
    /// A newer refresh token, which is presented first; nil where the last response was validated.
    public var unvalidated: Unvalidated?
    /// The private key to which the tokens are bound (RFC 9449), in the stored form of its kind of account; nil if they
    /// are not bound.
    public var proofKey: Secret?
    public var identity: Identity?
    public var subject: String?
    public var user: JSONObject?
    public var scope: String?
    /// The scopes that the session lost when a downscoped token was requested, sorted. A sign-in brings them back.
    public var lostScopes: [String] = []
    /// The scope of the downscoped token that was requested last. The newest refresh token may cover no more than that,
    /// until a refresh of the session's own token has shown its scopes; nil if that has been shown.
    public var downscopedTo: String?
    public var issuer: String
    /// The only origin that the refresh token may be sent to.
    public var tokenEndpointOrigin: String
    public var signedInAt: WallInstant
    /// When the session itself ends, where the provider says so. After that a refresh does not help.
    public var end: Deadline?
    public var rotation = Rotation.unknown
    public var tokens: [TokenKey: AccessToken] = [:]
    /// True if the vault was used on another machine after the sign-in. A copy of it there may refresh the session too.
    public var hasMoved = false
    /// Why the ID token of the last refresh was dropped, if it was. Not kept in the vault.
    public var idTokenOddity: BrokerError?
    public var attachments: [String: SessionAttachment] = [:]
    public var keeping = Keeping.vault

    public init(
        refreshToken: Secret? = nil, scope: String? = nil, issuer: String, tokenEndpointOrigin: String,
        signedInAt: WallInstant
    ) {
        self.refreshToken = refreshToken
        self.scope = scope
        self.issuer = issuer
        self.tokenEndpointOrigin = tokenEndpointOrigin
        self.signedInAt = signedInAt
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
    /// True if a refresh can bring the token of a key. An ID token is enough for an assertion.
    func canRenew(_ key: TokenKey, at now: BootInstant) -> Bool {
        isRefreshable || key.isAssertion && freshIDToken(at: now) != nil
    }

    /// How long an ID token is valid at least, when it is sent to another party.
    private static let idTokenMargin: Duration = .seconds(30)

    /// The ID token, if it is valid long enough to be sent to another party.
    public func freshIDToken(at now: BootInstant) -> Secret? {
        identity.flatMap { $0.expiry.remaining(at: now) >= Session.idTokenMargin ? $0.token : nil }
    }

    /// True if a refresh may bring a fresh ID token: none has been made since the last one went stale.
    func mayRenewIDToken(at now: BootInstant) -> Bool {
        guard !refreshTokens.isEmpty, freshIDToken(at: now) == nil, let identity else { return false }
        guard let own = tokens[.own], let expiry = own.expiry, let lifetime = own.lifetime else { return true }
        return expiry.boot - lifetime < identity.expiry.boot - Session.idTokenMargin
    }

    public var isEphemeral: Bool { keeping != .vault }
    public var isConfigured: Bool { keeping == .configuration }
}

/// Receives changes of sessions, for work that only one kind of account needs.
public protocol SessionObserver: Sendable {
    /// A session has been opened, in the place of `former` if there was one; `isAsked`: by another operation than a
    /// sign-in. Called in the turn of the account's lane.
    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async

    /// A session has changed. Called in the turn of the account's lane.
    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async

    /// A session is about to leave its lane. Called in the turn of the account's lane.
    func leaving(_ session: Session, of account: Account) async

    /// An event is about to be posted. Called in the same turn as the change that it reports.
    func willPost(_ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionManager)

    /// The account was removed, or its session can no longer be read.
    func forget(_ account: AccountName)
}

extension TokenKey {
    private static let maxScopes = 100

    /// The first parameter that cannot be sent, and why; nil if all can be.
    public var mistake: (parameter: String, reason: String)? {
        if let scopes, scopes.count > TokenKey.maxScopes || !scopes.allSatisfy(TokenDownscoping.isScope) {
            return (
                "scope",
                "it is at most \(TokenKey.maxScopes) scopes with spaces between them: printable ASCII, no quotes or "
                    + "backslashes"
            )
        }
        if let audience, !TokenDownscoping.isAudience(audience) {
            return ("audience", "it is a text without control characters")
        }
        if let resource, !TokenDownscoping.isResource(resource) {
            return ("resource", "it is an absolute URI without a fragment (RFC 8707)")
        }
        return nil
    }
}

/// The refresh tokens of a session. There may be several while a response is not validated.
extension Session {
    /// The refresh tokens worth presenting, the newest first.
    public var refreshTokens: [Secret] {
        [unvalidated?.token, unvalidated?.presented, refreshToken].compactMap { $0 }
    }

    /// Keeps these, the newest first; of more than three the two newest, and the oldest, whose response was validated.
    mutating func keep(refreshTokens: [Secret]) {
        let newer = refreshTokens.dropLast()
        refreshToken = refreshTokens.last
        unvalidated = newer.first.map { Unvalidated($0, presented: newer.dropFirst().first) }
    }

    /// The session while a response to `presented` is not validated: a new token comes before those that are held.
    func keeping(_ token: Secret?, presented: Secret) -> Session {
        var session = self
        let known = Array(refreshTokens.drop { $0 != presented })
        let new = token.flatMap { $0 == presented ? nil : $0 }
        session.keep(refreshTokens: [new].compactMap { $0 } + (known.isEmpty ? [presented] : known))
        session.rotation = new != nil ? .rotates : .keeps
        return session
    }

    /// The session once the response is validated: only `token` is kept. If it came with a downscoped token, the
    /// presented refresh token is kept as well, until a refresh has shown which scopes the new one has.
    func settlingRefreshTokens(_ token: Secret, _ presented: Secret) -> Session {
        var session = self
        session.keep(refreshTokens: downscopedTo == nil || token == presented ? [token] : [token, presented])
        return session
    }

    /// Takes over the refresh token of a replaced session of the same subject, token endpoint and scopes, if this one
    /// has none: Google sends one with the user's first consent only. `isSameFamily`: it also renews this one's tokens.
    mutating func keepRefreshToken(of held: Session, isSameFamily: Bool) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSameUser(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes), isSameFamily,
            // A refresh token is presented with the key that it is bound to, and so is an access token.
            held.proofKey == nil || tokens.values.allSatisfy({ $0.type == "Bearer" })
        else { return }
        proofKey = held.proofKey ?? proofKey
        keep(refreshTokens: held.refreshTokens)
        downscopedTo = held.downscopedTo
        rotation = held.rotation
        end = held.end
    }

    /// True if the newest refresh token came with a downscoped token, and no refresh has shown its scopes yet.
    var mayHoldDownscopedToken: Bool { unvalidated != nil && downscopedTo != nil }
    public var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
}

extension TokenKey {
    /// The scopes that the provider says a token has beyond those that were requested, sorted; empty if none were
    /// named.
    public func excess(of token: AccessToken) -> [String] {
        guard let scopes, token.isScopeStated else { return [] }
        return Set((token.scope ?? "").split(separator: " ").map(String.init))
            .filter { !TokenDownscoping.isCovered($0, by: scopes) }.sorted()
    }
}
