public import RingbackBase

/// The userinfo request (OpenID Connect Core section 5.3.1).
public enum UserinfoRequest {
    /// A GET with the access token in the `Authorization` field, because URLs are logged (RFC 9700 section 4.3.2). A
    /// token that is bound to a key needs a proof beside it.
    public static func build(endpoint: String, accessToken: Secret, isBound: Bool = false) -> HTTPRequest {
        .document(at: endpoint, authorization: isBound ? .dpop(accessToken) : .bearer(accessToken))
    }
}

/// The subject's claims (OpenID Connect Core section 5.3.2). Their `sub` must match that of the ID token.
public struct Userinfo: Sendable, Equatable {
    /// `sub`; nil only if there is no ID token and the provider does not send one.
    public let subject: String?
    public let claims: JSONObject

    /// Reads an unsigned response; for a signed one see ``signedToken(in:)``. `sub` must be equal to `subject`, if
    /// given. Throws `.refused` with `invalid_token` for status 401 and `insufficient_scope` for 403 (RFC 6750 section
    /// 3.1), without the provider's message: these errors say nothing about the grant. Otherwise throws `.unavailable`
    /// or `.invalid`.
    public init(
        parsing response: HTTPResponse, subject: String?, dialect: UserinfoDialect = .openID
    ) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .userinfo)
        switch response.status {
        case 200: break
        case 401: throw .refused(.init(code: "invalid_token", message: nil, status: 401))
        case 403: throw .refused(.init(code: "insufficient_scope", message: nil, status: 403))
        default: throw .invalid(.userinfo, reason: "HTTP \(response.status)")
        }
        guard ResponseReader.mediaType(of: response) != "application/jwt" else {
            throw .invalid(.userinfo, reason: "a signed response, but an unsigned one was expected")
        }
        let object = try ResponseReader.object(in: response, of: .userinfo)
        try self.init(claims: dialect.claims(in: object), subject: subject)
    }

    /// Throws `.invalid` if the checked claims belong to another subject.
    init(claims: JSONObject, subject: String?) throws(OAuthError) {
        switch claims["sub"] {
        case .string(let text)? where text.isSubject: self.subject = text
        case nil, .null?: self.subject = nil
        default: throw .invalid(.userinfo, reason: "a sub that is not text")
        }
        if let subject {
            guard let stated = self.subject else { throw .invalid(.userinfo, reason: "no sub") }
            guard stated.utf8.elementsEqual(subject.utf8) else {
                throw .invalid(.userinfo, reason: "the sub differs from the ID token's")
            }
        }
        self.claims = claims
    }
}

/// Signed userinfo (OpenID Connect Core section 5.3.2), for clients that are registered for it.
extension Userinfo {
    /// The token of a successful response of type `application/jwt`; nil for others. ``IDToken/isKeyMissing(for:in:)``
    /// applies to it too.
    public static func signedToken(in response: HTTPResponse) -> Secret? {
        guard response.status == 200, !response.isTruncated, ResponseReader.mediaType(of: response) == "application/jwt"
        else { return nil }
        return response.body
    }

    /// Verifies a signed response: the provider's keys must have signed it, `iss`, `aud` and the subject must match,
    /// and its times, if any, must be valid. Throws `.invalid(.userinfo, reason:)`. In `expected`, the issuer is the ID
    /// token's own `iss` if that of the metadata is a template; the algorithms are
    /// ``ProviderMetadata/allowedUserinfoAlgorithms``.
    public init(
        verifying token: Secret, keys: JSONWebKeySet, expecting expected: IDTokenExpectations
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

    private static func check(_ claims: JSONObject, _ expected: IDTokenExpectations) throws(OAuthError) {
        guard let issuer = try claims.text("iss"),
            IssuerTemplate.admits(issuer, expected: expected.issuer, tenant: try claims.text("tid"))
        else { throw .invalidIDToken(claim: "iss", reason: "missing, or another issuer") }
        guard try claims.audience().contains(where: { $0.isSameBytes(as: expected.clientID) }) else {
            throw .invalidIDToken(claim: "aud", reason: "for another client")
        }
        let leeway = expected.boundedLeeway
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

/// The member names of a userinfo response: OpenID Connect's, or a provider's own.
public enum UserinfoDialect: Sendable, Equatable {
    case openID
    /// `GET /user` of GitHub's API. The subject is the numeric id, because login names can be changed and reused.
    case gitHub

    /// Under OpenID Connect's names (Core section 5.1). Others are left out.
    func claims(in object: JSONObject) -> JSONObject {
        switch self {
        case .openID: return object
        case .gitHub:
            var claims = JSONObject()
            if let number = object["id"]?.integer { claims["sub"] = .string(String(number)) }
            for (word, name) in [
                ("login", "preferred_username"), ("name", "name"), ("email", "email"), ("avatar_url", "picture"),
                ("html_url", "profile"),
            ] {
                guard let text = object[word]?.string, !text.isEmpty else { continue }
                claims[name] = .string(text)
            }
            return claims
        }
    }
}
