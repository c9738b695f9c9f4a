internal import Cryptography
public import Secrets
public import StrictJSON

/// The provider's word about who signed in. A value exists only after every check of OpenID Connect Core section
/// 3.1.3.7, and of section 12.2 on refresh.
public struct IDToken: Sendable {
    /// `iss`.
    public let issuer: String
    /// `sub`: 1 to 255 bytes.
    public let subject: String
    /// `aud`.
    public let audience: Set<String>
    /// `exp` in Unix seconds.
    public let expiresAt: Int
    /// `iat` in Unix seconds.
    public let issuedAt: Int
    /// `auth_time` in Unix seconds.
    public let authenticationTime: Int?
    /// `azp`.
    public let authorizedParty: String?
    /// Every claim, as the provider wrote it.
    public let claims: JSONObject

    /// Believes a token if the provider's keys signed it and all its claims hold. Throws
    /// ``OAuthError/invalidIDToken(claim:reason:)`` that names the first thing that does not; when the keys may be out
    /// of date, ``isKeyMissing(for:in:)`` says so.
    public static func verify(
        _ token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
    ) throws(OAuthError) -> IDToken {
        let signature: JSONWebSignature
        let signed: JSONWebSignature.Verified
        do {
            signature = try JSONWebSignature(parsing: token)
            signed = try signature.verified(with: keys, allowed: expected.allowedAlgorithms)
        } catch {
            throw .invalidIDToken(claim: error.part, reason: error.reason)
        }
        // An access token or a logout token may carry our name as its audience; its type says what it is not
        // (RFC 8725 section 3.11, RFC 9068 section 2.1). ID tokens say JWT or nothing.
        if let type = signature.type, type.hasSuffix("+jwt") {
            throw .invalidIDToken(claim: "typ", reason: "a token of another kind")
        }
        let idToken = try IDToken(claims: signed.payload)
        try idToken.checkParties(expected)
        try idToken.checkSigner(signed.key, expected)
        try idToken.checkTimes(expected)
        try idToken.checkAge(expected)
        try idToken.checkNonce(expected)
        try idToken.checkHash("at_hash", of: expected.accessToken, algorithm: signature.algorithm)
        try idToken.checkHash("c_hash", of: expected.code, algorithm: signature.algorithm)
        if let previous = expected.previous { try idToken.checkSuccession(to: previous) }
        return idToken
    }

    /// True if a token that was not believed may have been signed by a key that is newer than the set: fetch the set
    /// again, once, and not more often than the provider can bear (OpenID Connect Core section 10.1.1).
    public static func isKeyMissing(for token: Secret, in keys: JSONWebKeySet) -> Bool {
        guard let signature = try? JSONWebSignature(parsing: token) else { return false }
        return signature.isKeyMissing(in: keys)
    }

    private init(claims: JSONObject) throws(OAuthError) {
        issuer = try IDToken.require(claims.text("iss"), "iss")
        subject = try IDToken.require(claims.text("sub"), "sub")
        audience = Set(try claims.audience())
        expiresAt = try IDToken.require(claims.instant("exp"), "exp")
        issuedAt = try IDToken.require(claims.instant("iat"), "iat")
        authenticationTime = try claims.instant("auth_time")
        authorizedParty = try claims.text("azp")
        self.claims = claims
        guard subject.isSubject else {
            throw .invalidIDToken(claim: "sub", reason: "not 1 to 255 bytes without control characters")
        }
        // A logout token may carry our name, its type is only recommended, and it must never sign anybody in
        // (OpenID Connect Back-Channel Logout section 2.4).
        guard claims["events"]?[IDToken.logoutEvent] == nil else {
            throw .invalidIDToken(claim: "events", reason: "a logout token")
        }
    }

    private static let logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

    private static func require<Value>(_ value: Value?, _ claim: String) throws(OAuthError) -> Value {
        guard let value else { throw .invalidIDToken(claim: claim, reason: "missing") }
        return value
    }

    private func checkParties(_ expected: IDTokenExpectations) throws(OAuthError) {
        // Against a template a directory must be named twice, alike: an absent one is the empty name.
        let tenant = IssuerTemplate.isTemplate(expected.issuer) ? try claims.text("tid") ?? "" : nil
        guard IssuerTemplate.admits(issuer, expected: expected.issuer, tenant: tenant) else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer")
        }
        // The list, not the set: a set takes two spellings of an accented letter for one audience.
        let isOurs = try claims.audience().map { $0.isSameBytes(as: expected.clientID) }
        guard isOurs.contains(true) else { throw .invalidIDToken(claim: "aud", reason: "for another client") }
        if let authorizedParty {
            guard authorizedParty.isSameBytes(as: expected.clientID) else {
                throw .invalidIDToken(claim: "azp", reason: "issued to another client")
            }
        } else if isOurs.contains(false) {
            // Without azp nothing says that the token was made for us and not for one of the others.
            throw .invalidIDToken(claim: "azp", reason: "missing beside several audiences")
        }
    }

    /// Directories that share a key set have keys of their own in it, each marked with its issuer.
    private func checkSigner(_ key: JSONWebKeySet.Key, _ expected: IDTokenExpectations) throws(OAuthError) {
        guard IssuerTemplate.isTemplate(expected.issuer), let owner = key.issuer else { return }
        guard owner.isSameBytes(as: issuer) || owner.isSameBytes(as: expected.issuer) else {
            throw .invalidIDToken(claim: "iss", reason: "signed with the key of another issuer")
        }
    }

    private func checkTimes(_ expected: IDTokenExpectations) throws(OAuthError) {
        // The clock is ours and the leeway small, the claims are bounded: no sum here overflows.
        let leeway = expected.boundedLeeway
        guard expected.now < expiresAt + leeway else {
            throw .invalidIDToken(claim: "exp", reason: "expired")
        }
        guard issuedAt <= expected.now + leeway else {
            throw .invalidIDToken(claim: "iat", reason: "issued in the future; is a clock wrong?")
        }
        if let notBefore = try claims.instant("nbf"), notBefore > expected.now + leeway {
            throw .invalidIDToken(claim: "nbf", reason: "not valid yet; is a clock wrong?")
        }
    }

    /// Section 3.1.3.7, rule 13.
    private func checkAge(_ expected: IDTokenExpectations) throws(OAuthError) {
        guard let maxAge = expected.maxAge else { return }
        guard let authenticationTime else {
            throw .invalidIDToken(claim: "auth_time", reason: "missing though max_age was asked for")
        }
        let oldest = min(max(maxAge, 0), LenientNumber.longest) + expected.boundedLeeway
        guard expected.now - authenticationTime <= oldest else {
            throw .invalidIDToken(claim: "auth_time", reason: "longer ago than asked for")
        }
    }

    private func checkNonce(_ expected: IDTokenExpectations) throws(OAuthError) {
        let nonce = try claims.text("nonce").map { Secret($0) }
        if let sent = expected.nonce, nonce != sent {
            throw .invalidIDToken(claim: "nonce", reason: nonce == nil ? "missing" : "of another sign-in")
        }
        // A refreshed token need not repeat the nonce, but may show no other (section 12.2).
        if let nonce, let earlier = expected.previous?.nonce, nonce != earlier {
            throw .invalidIDToken(claim: "nonce", reason: "of another sign-in")
        }
    }

    private func checkHash(
        _ claim: String, of secret: Secret?, algorithm: SignatureAlgorithm
    ) throws(OAuthError) {
        guard let value = try claims.text(claim), let secret else { return }
        guard value.isSameBytes(as: algorithm.halfHash(of: secret)) else {
            throw .invalidIDToken(claim: claim, reason: "belongs to another answer")
        }
    }

    /// OpenID Connect Core section 12.2; the issuer was compared already, unless a template admits several.
    private func checkSuccession(to previous: IDTokenExpectations.Previous) throws(OAuthError) {
        guard previous.issuer?.isSameBytes(as: issuer) ?? true else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer than before")
        }
        guard subject.isSameBytes(as: previous.subject) else {
            throw .invalidIDToken(claim: "sub", reason: "another person than before")
        }
        guard audience.count == previous.audience.count,
            audience.allSatisfy({ mine in previous.audience.contains { $0.isSameBytes(as: mine) } })
        else { throw .invalidIDToken(claim: "aud", reason: "another audience than before") }
        switch (authorizedParty, previous.authorizedParty) {
        case (nil, nil): break
        case (let mine?, let earlier?) where mine.isSameBytes(as: earlier): break
        default: throw .invalidIDToken(claim: "azp", reason: "another party than before")
        }
        if let authenticationTime, let earlier = previous.authenticationTime, authenticationTime != earlier {
            throw .invalidIDToken(claim: "auth_time", reason: "another sign-in than before")
        }
    }
}
