public import HTTPMessages
public import Secrets
public import StrictJSON

/// The request for a person's claims (OpenID Connect Core section 5.3.1).
public enum UserinfoRequest {
    /// A GET with the access token in the `Authorization` field, never in the URL (RFC 9700 section 4.3.2).
    public static func build(endpoint: String, accessToken: Secret) -> HTTPRequest {
        HTTPRequest(
            url: endpoint, fields: HTTPFields([("Accept", "application/json")]),
            authorization: Secret(bytes: Array("Bearer ".utf8) + accessToken.revealedBytes()),
            limits: HTTPLimits(maxBody: HTTPRequest.maxAnswer)
        )
    }
}

/// A person's claims (OpenID Connect Core section 5.3.2). They are the person's of the ID token or nobody's.
public struct Userinfo: Sendable, Equatable {
    /// `sub`; nil only where no ID token names a subject and the provider does not either.
    public let subject: String?
    public let claims: JSONObject

    /// Reads a plain answer; for a signed one see ``signedToken(in:)``. With a `subject`, `sub` must be there and be it, byte for byte.
    ///
    /// 401 and 403 are `.refused` as `invalid_token` and `insufficient_scope` (RFC 6750 section 3.1), in our words: an
    /// API's error says nothing about the grant.
    public init(
        parsing response: HTTPResponse, subject: String?, dialect: UserinfoDialect = .openID
    ) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .userinfo)
        switch response.status {
        case 200: break
        case 401: throw .refused(OAuthError.Refusal(code: "invalid_token", message: nil, status: 401))
        case 403: throw .refused(OAuthError.Refusal(code: "insufficient_scope", message: nil, status: 403))
        default: throw .invalid(.userinfo, reason: "HTTP \(response.status)")
        }
        guard ResponseReader.mediaType(of: response) != "application/jwt" else {
            throw .invalid(.userinfo, reason: "a signed answer where a plain one was to be read")
        }
        let object = try ResponseReader.object(in: response, of: .userinfo)
        try self.init(claims: dialect.claims(in: object), subject: subject)
    }

    /// The claims of an answer that is believed, if they are the subject's.
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
