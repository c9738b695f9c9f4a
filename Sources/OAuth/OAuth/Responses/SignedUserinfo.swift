public import Cryptography
public import HTTPMessages
public import Secrets
internal import StrictJSON

/// The values that a signed userinfo response must match.
public struct UserinfoExpectations: Sendable {
    /// As ``IDTokenExpectations/issuer``; the ID token's own `iss` if that is a template.
    public var issuer: String
    public var clientID: String
    /// The ID token's `sub`.
    public var subject: String?
    /// Unix seconds.
    public var now: Int
    /// As ``IDTokenExpectations/leeway``.
    public var leeway: Int
    /// ``ProviderMetadata/allowedUserinfoAlgorithms``, never the algorithm of a token's header.
    public var allowedAlgorithms: Set<SignatureAlgorithm>

    public init(
        issuer: String, clientID: String, subject: String?, now: Int, leeway: Int = 120,
        allowedAlgorithms: Set<SignatureAlgorithm> = [.rs256]
    ) {
        self.issuer = issuer
        self.clientID = clientID
        self.subject = subject
        self.now = now
        self.leeway = leeway
        self.allowedAlgorithms = allowedAlgorithms
    }
}

/// Signed userinfo (OpenID Connect Core section 5.3.2), for clients that are registered for it.
extension Userinfo {
    /// The token of a successful response of type `application/jwt`; nil for other responses, which
    /// ``init(parsing:subject:)`` reads. Use ``IDToken/isKeyMissing(for:in:)`` for it as for an ID token.
    public static func signedToken(in response: HTTPResponse) -> Secret? {
        guard response.status == 200, !response.isTruncated, ResponseReader.mediaType(of: response) == "application/jwt"
        else { return nil }
        return response.body
    }

    /// Verifies a signed response: the provider's keys must have signed it, `iss`, `aud` and the subject must match,
    /// and its times, if there are any, must be valid. Throws `.invalid(.userinfo, reason:)`.
    public init(
        verifying token: Secret, keys: JSONWebKeySet, expecting expected: UserinfoExpectations
    ) throws(OAuthError) {
        let claims: JSONObject
        do throws(JSONWebSignature.Failure) {
            let signature = try JSONWebSignature(parsing: token)
            if let type = signature.type, type.hasSuffix("+jwt") {
                throw JSONWebSignature.Failure("typ", "a token of another kind")
            }
            claims = try signature.verify(with: keys, allowed: expected.allowedAlgorithms)
        } catch {
            throw .invalid(.userinfo, reason: "\(error.part): \(error.reason)")
        }
        do throws(OAuthError) {
            try Userinfo.check(claims, expected)
        } catch {
            guard case .invalidIDToken(let claim, let reason) = error else { throw error }
            throw .invalid(.userinfo, reason: "\(claim): \(reason)")
        }
        try self.init(claims: claims, subject: expected.subject)
    }

    private static func check(_ claims: JSONObject, _ expected: UserinfoExpectations) throws(OAuthError) {
        guard let issuer = try claims.text("iss"),
            IssuerTemplate.admits(issuer, expected: expected.issuer, tenant: try claims.text("tid"))
        else { throw .invalidIDToken(claim: "iss", reason: "missing, or another issuer") }
        guard try claims.audience().contains(where: { $0.isSameBytes(as: expected.clientID) }) else {
            throw .invalidIDToken(claim: "aud", reason: "for another client")
        }
        let leeway = min(max(expected.leeway, 0), 300)
        if let expiresAt = try claims.instant("exp"), expected.now >= expiresAt + leeway {
            throw .invalidIDToken(claim: "exp", reason: "expired")
        }
        for claim in ["iat", "nbf"] {
            if let instant = try claims.instant(claim), instant > expected.now + leeway {
                throw .invalidIDToken(claim: claim, reason: "in the future; is a clock wrong?")
            }
        }
    }
}
