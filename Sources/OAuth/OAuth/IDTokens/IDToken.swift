public import Cryptography
public import RingbackBase

/// The provider's statement about the signed-in subject. A value exists only after all checks of OpenID Connect Core
/// section 3.1.3.7, and on refresh those of section 12.2.
public struct IDToken: Sendable {
    public let issuer: String
    /// `sub`: 1 to 255 bytes.
    public let subject: String
    public let audience: Set<String>
    /// `exp` in Unix seconds.
    public let expiresAt: Int
    /// `iat` in Unix seconds.
    public let issuedAt: Int
    /// `auth_time` in Unix seconds.
    public let authenticationTime: Int?
    public let authorizedParty: String?
    /// All claims, as received.
    public let claims: JSONObject

    /// Verifies a token: the provider's keys must have signed it, and all claims must match. Throws
    /// ``OAuthError/invalidIDToken(claim:reason:)`` for the first check that fails; ``isKeyMissing(for:in:)`` is true
    /// if the keys may be outdated.
    public static func verify(
        _ token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
    ) throws(OAuthError) -> IDToken {
        try IDToken(signed: SignedClaims(token, keys, expected), expecting: expected)
    }

    /// Verifies an ID token from a refresh response (OpenID Connect Core section 12.2). Throws if the whole response
    /// must not be used: the signature is not by the provider's keys, or `iss`, `sub`, `aud`, `azp` or the `nonce`, if
    /// present, differ from those of the session. A returned failure concerns only this ID token; the access token is
    /// still usable.
    public static func judge(
        refreshed token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
    ) throws(OAuthError) -> Result<IDToken, OAuthError> {
        let signed = try SignedClaims(token, keys, expected)
        let parties = try IDTokenParties(claims: signed.claims)
        try parties.check(expected, signer: signed.key)
        return Result { () throws(OAuthError) in try IDToken(signed: signed, expecting: expected) }
    }

    /// The claims of a token whose signature was verified.
    private struct SignedClaims {
        let signature: JSONWebSignature
        let key: JSONWebKeySet.Key
        let claims: JSONObject

        init(_ token: Secret, _ keys: JSONWebKeySet, _ expected: IDTokenExpectations) throws(OAuthError) {
            do throws(JSONWebSignature.Failure) {
                signature = try JSONWebSignature(parsing: token)
                let signed = try signature.verified(with: keys, allowed: expected.allowedAlgorithms)
                (key, claims) = (signed.key, signed.payload)
            } catch {
                throw .invalidIDToken(claim: error.part, reason: error.reason)
            }
        }
    }

    /// True if a token was rejected because its key may be newer than the set, which should then be fetched again,
    /// once, and not too often (OpenID Connect Core section 10.1.1).
    public static func isKeyMissing(for token: Secret, in keys: JSONWebKeySet) -> Bool {
        guard let signature = try? JSONWebSignature(parsing: token) else { return false }
        return signature.isKeyMissing(in: keys)
    }

    private init(signed: SignedClaims, expecting expected: IDTokenExpectations) throws(OAuthError) {
        // An access token or a logout token may have the same issuer and audience. Its `typ` tells the kinds apart (RFC
        // 8725 section 3.11, RFC 9068 section 2.1). In ID tokens it is `JWT` or absent.
        if let type = signed.signature.type, type.hasSuffix("+jwt") {
            throw .invalidIDToken(claim: "typ", reason: "a token of another kind")
        }
        let claims = signed.claims
        let parties = try IDTokenParties(claims: claims)
        issuer = parties.issuer
        subject = parties.subject
        audience = Set(parties.audience)
        expiresAt = try IDToken.require(claims.instant("exp"), "exp")
        issuedAt = try IDToken.require(claims.instant("iat"), "iat")
        authenticationTime = try claims.instant("auth_time")
        authorizedParty = parties.authorizedParty
        self.claims = claims
        // A logout token may have our client id as audience and need not have its `typ`. It must never be accepted as
        // an ID token (OpenID Connect Back-Channel Logout section 2.4).
        guard claims["events"]?[IDToken.logoutEvent] == nil else {
            throw .invalidIDToken(claim: "events", reason: "a logout token")
        }
        try parties.check(expected, signer: signed.key)
        try checkTimes(expected)
        try checkAge(expected)
        try checkHash("at_hash", of: expected.accessToken, algorithm: signed.signature.algorithm)
        try checkHash("c_hash", of: expected.code, algorithm: signed.signature.algorithm)
        if let previous = expected.previous { try checkSuccession(to: previous) }
    }

    private static let logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

    fileprivate static func require<Value>(_ value: Value?, _ claim: String) throws(OAuthError) -> Value {
        guard let value else { throw .invalidIDToken(claim: claim, reason: "missing") }
        return value
    }

    private func checkTimes(_ expected: IDTokenExpectations) throws(OAuthError) {
        // The claims and the leeway are limited, so no sum here overflows.
        let leeway = expected.boundedLeeway
        guard expected.now < expiresAt + leeway else {
            throw .invalidIDToken(claim: "exp", reason: "expired; is a clock wrong?")
        }
        guard issuedAt <= expected.now + leeway else {
            throw .invalidIDToken(claim: "iat", reason: "issued in the future; is a clock wrong?")
        }
        if let notBefore = try claims.instant("nbf"), notBefore > expected.now + leeway {
            throw .invalidIDToken(claim: "nbf", reason: "not valid yet; is a clock wrong?")
        }
    }

    /// OpenID Connect Core section 3.1.3.7, rule 13.
    private func checkAge(_ expected: IDTokenExpectations) throws(OAuthError) {
        guard let maxAge = expected.maxAge else { return }
        guard let authenticationTime else {
            throw .invalidIDToken(claim: "auth_time", reason: "missing, although max_age was requested")
        }
        let oldest = min(max(maxAge, 0), LenientNumber.longest) + expected.boundedLeeway
        guard expected.now - authenticationTime <= oldest else {
            throw .invalidIDToken(claim: "auth_time", reason: "longer ago than max_age allows")
        }
    }

    private func checkHash(_ claim: String, of secret: Secret?, algorithm: SignatureAlgorithm) throws(OAuthError) {
        guard let value = try claims.text(claim), let secret else { return }
        guard value.isSameBytes(as: algorithm.halfHash(of: secret)) else {
            throw .invalidIDToken(claim: claim, reason: "belongs to another response")
        }
    }

    /// The checks of OpenID Connect Core section 12.2 that ``IDTokenParties`` does not make.
    private func checkSuccession(to previous: IDTokenExpectations.Previous) throws(OAuthError) {
        if let authenticationTime, let earlier = previous.authenticationTime, authenticationTime != earlier {
            throw .invalidIDToken(claim: "auth_time", reason: "another sign-in than before")
        }
    }
}

// A claim of the wrong type is an error and is not treated as absent. Otherwise a check could be skipped by sending the
// claim as another type. Null means absent, because some servers write null for missing values.
extension JSONObject {
    /// A claim's text; nil if it is absent. Throws `invalidIDToken` for another type.
    func text(_ claim: String) throws(OAuthError) -> String? {
        guard let value = self[claim], value != .null else { return nil }
        guard let text = value.string else { throw .invalidIDToken(claim: claim, reason: "not a string") }
        return text
    }

    /// A claim's time in whole Unix seconds (RFC 7519 section 2, NumericDate); nil if it is absent. Fractions are
    /// dropped. Throws `invalidIDToken` for times before 1970 or after the year 9999: these are mistakes, mostly
    /// milliseconds, and such a token would never expire.
    func instant(_ claim: String) throws(OAuthError) -> Int? {
        let latest = 253_402_300_799
        let seconds: Int
        switch self[claim] {
        case nil, .null?: return nil
        case .integer(let value)?: seconds = value
        case .double(let value)? where value.isFinite && value >= 0 && value <= Double(latest): seconds = Int(value)
        case .double?: throw .invalidIDToken(claim: claim, reason: "not a valid time")
        default: throw .invalidIDToken(claim: claim, reason: "not a number")
        }
        guard (0...latest).contains(seconds) else { throw .invalidIDToken(claim: claim, reason: "not a valid time") }
        return seconds
    }

    /// The values of `aud`: one string or a list of strings, none of them empty. Throws `invalidIDToken`.
    func audience() throws(OAuthError) -> [String] {
        let values: [String]
        switch self["aud"] {
        case nil, .null?: throw .invalidIDToken(claim: "aud", reason: "missing")
        case .string(let text)?: values = [text]
        case .array(let elements)?:
            values = elements.compactMap(\.string)
            guard values.count == elements.count else {
                throw .invalidIDToken(claim: "aud", reason: "not a list of strings")
            }
        default: throw .invalidIDToken(claim: "aud", reason: "neither a string nor a list")
        }
        guard !values.isEmpty, values.allSatisfy({ !$0.isEmpty }) else {
            throw .invalidIDToken(claim: "aud", reason: "empty")
        }
        return values
    }
}

extension SignatureAlgorithm {
    /// The value of `at_hash` and `c_hash` (OpenID Connect Core section 3.1.3.6): half of the digest that the signature
    /// uses, which is SHA-512 for Ed25519.
    func halfHash(of secret: Secret) -> String {
        let digest =
            switch self {
            case .rs256, .ps256, .es256: Digest.sha256(secret)
            case .rs384, .ps384, .es384: Digest.sha384(secret)
            case .rs512, .ps512, .es512, .edDSA: Digest.sha512(secret)
            }
        return Base64URL.encode(digest.prefix(digest.count / 2))
    }
}

extension String {
    /// True for a valid `sub`: 1 to 255 bytes (OpenID Connect Core section 2) without control characters.
    var isSubject: Bool {
        (1...255).contains(utf8.count) && utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}

/// The values that an ID token must match.
public struct IDTokenExpectations: Sendable {
    /// The values of the sign-in's ID token that a refreshed one must repeat (OpenID Connect Core section 12.2).
    public struct Previous: Sendable {
        public var subject: String
        /// Nil if it is unknown. Needed only if ``IDTokenExpectations/issuer`` is a template.
        public var issuer: String?
        public var audience: Set<String>
        /// In Unix seconds; nil if the token had none.
        public var authenticationTime: Int?
        public var authorizedParty: String?
        /// Nil if the token had none or it is unknown.
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

/// The claims that say who issued an ID token, about whom and for whom: `iss`, `sub`, `aud`, `azp` and `nonce`. If one
/// of them is wrong, the whole response belongs to another sign-in, and none of its tokens may be used.
struct IDTokenParties {
    let issuer: String
    let subject: String
    /// A list, not a `Set<String>`, because Swift treats two Unicode spellings of a letter as equal.
    let audience: [String]
    let authorizedParty: String?
    private let claims: JSONObject

    init(claims: JSONObject) throws(OAuthError) {
        self.claims = claims
        issuer = try IDToken.require(claims.text("iss"), "iss")
        subject = try IDToken.require(claims.text("sub"), "sub")
        audience = try claims.audience()
        authorizedParty = try claims.text("azp")
        guard subject.isSubject else {
            throw .invalidIDToken(claim: "sub", reason: "not 1 to 255 bytes without control characters")
        }
    }

    func check(_ expected: IDTokenExpectations, signer: JSONWebKeySet.Key) throws(OAuthError) {
        try checkParties(expected)
        try checkSigner(signer, expected)
        try checkNonce(expected)
        // Checked last: signature, issuer and audience are good.
        if let wanted = expected.subject, !subject.isSameBytes(as: wanted) { throw .otherSubject }
        if let previous = expected.previous { try checkSuccession(to: previous) }
    }

    private func checkParties(_ expected: IDTokenExpectations) throws(OAuthError) {
        // For a template the token must name its directory in `tid` too. A missing `tid` matches no directory.
        let tenant = IssuerTemplate.isTemplate(expected.issuer) ? try claims.text("tid") ?? "" : nil
        guard IssuerTemplate.admits(issuer, expected: expected.issuer, tenant: tenant) else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer")
        }
        let isOurs = audience.map { $0.isSameBytes(as: expected.clientID) }
        guard isOurs.contains(true) else { throw .invalidIDToken(claim: "aud", reason: "for another client") }
        if let authorizedParty {
            guard authorizedParty.isSameBytes(as: expected.clientID) else {
                throw .invalidIDToken(claim: "azp", reason: "issued to another client")
            }
        } else if isOurs.contains(false) {
            // Without `azp` it is unknown for which of the audiences the token was issued.
            throw .invalidIDToken(claim: "azp", reason: "missing, although there are several audiences")
        }
    }

    /// Directories that share a key set may have keys of their own in it, each with its `issuer`.
    private func checkSigner(_ key: JSONWebKeySet.Key, _ expected: IDTokenExpectations) throws(OAuthError) {
        guard IssuerTemplate.isTemplate(expected.issuer), let owner = key.issuer else { return }
        guard owner.isSameBytes(as: issuer) || owner.isSameBytes(as: expected.issuer) else {
            throw .invalidIDToken(claim: "iss", reason: "signed with the key of another issuer")
        }
    }

    private func checkNonce(_ expected: IDTokenExpectations) throws(OAuthError) {
        let nonce = try claims.text("nonce").map { Secret($0) }
        if let sent = expected.nonce, nonce != sent {
            throw .invalidIDToken(claim: "nonce", reason: nonce == nil ? "missing" : "of another sign-in")
        }
        // A refreshed token need not repeat the nonce, but must not have another one (section 12.2).
        if let nonce, let earlier = expected.previous?.nonce, nonce != earlier {
            throw .invalidIDToken(claim: "nonce", reason: "of another sign-in")
        }
    }

    /// OpenID Connect Core section 12.2. The issuer was already compared, but a template accepts several.
    private func checkSuccession(to previous: IDTokenExpectations.Previous) throws(OAuthError) {
        guard previous.issuer?.isSameBytes(as: issuer) ?? true else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer than before")
        }
        guard subject.isSameBytes(as: previous.subject) else { throw .otherSubject }
        let (mine, theirs) = (Set(audience), previous.audience)
        guard mine.count == theirs.count,
            mine.allSatisfy({ mine in theirs.contains { $0.isSameBytes(as: mine) } })
        else { throw .invalidIDToken(claim: "aud", reason: "another audience than before") }
        switch (authorizedParty, previous.authorizedParty) {
        case (nil, nil): break
        case (let mine?, let earlier?) where mine.isSameBytes(as: earlier): break
        default: throw .invalidIDToken(claim: "azp", reason: "another party than before")
        }
    }
}
