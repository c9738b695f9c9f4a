internal import Cryptography
public import Secrets
public import StrictJSON

/// The provider's statement about the signed-in subject. A value exists only after all checks of OpenID Connect Core
/// section 3.1.3.7, and on refresh those of section 12.2.
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
    /// All claims, as received.
    public let claims: JSONObject

    /// Verifies a token: the provider's keys must have signed it, and all claims must match. Throws
    /// ``OAuthError/invalidIDToken(claim:reason:)`` for the first check that fails. If the keys may be outdated,
    /// ``isKeyMissing(for:in:)`` is true.
    public static func verify(
        _ token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
    ) throws(OAuthError) -> IDToken {
        try IDToken(signed: SignedClaims(token, keys, expected), expecting: expected)
    }

    /// Verifies an ID token from a refresh response (OpenID Connect Core section 12.2).
    ///
    /// Throws if the whole response must not be used: the signature is not by the provider's keys, or `iss`, `sub`,
    /// `aud`, `azp` or the `nonce`, if present, differ from those of the session. A returned failure concerns only this
    /// ID token; the access token of the response is still usable.
    public static func judge(
        refreshed token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
    ) throws(OAuthError) -> Result<IDToken, OAuthError> {
        let signed = try SignedClaims(token, keys, expected)
        let parties = try IDTokenParties(claims: signed.claims)
        try parties.check(expected, signer: signed.key)
        do throws(OAuthError) {
            return .success(try IDToken(signed: signed, expecting: expected))
        } catch {
            return .failure(error)
        }
    }

    /// The claims of a token whose signature was verified.
    private struct SignedClaims {
        let signature: JSONWebSignature
        let key: JSONWebKeySet.Key
        let claims: JSONObject

        init(
            _ token: Secret, _ keys: JSONWebKeySet, _ expected: IDTokenExpectations
        ) throws(OAuthError) {
            do throws(JSONWebSignature.Failure) {
                signature = try JSONWebSignature(parsing: token)
                let signed = try signature.verified(with: keys, allowed: expected.allowedAlgorithms)
                (key, claims) = (signed.key, signed.payload)
            } catch {
                throw .invalidIDToken(claim: error.part, reason: error.reason)
            }
        }
    }

    /// True if a token was rejected because its key may be newer than the set. The caller should then fetch the set
    /// again, once, and not too often (OpenID Connect Core section 10.1.1).
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

    private static func require<Value>(_ value: Value?, _ claim: String) throws(OAuthError) -> Value {
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

    private func checkHash(
        _ claim: String, of secret: Secret?, algorithm: SignatureAlgorithm
    ) throws(OAuthError) {
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
