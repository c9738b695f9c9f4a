public import HTTPMessages
public import Secrets
public import StrictJSON

/// The userinfo request (OpenID Connect Core section 5.3.1).
public enum UserinfoRequest {
    /// A GET with the access token in the `Authorization` field, because URLs are logged (RFC 9700 section 4.3.2).
    public static func build(endpoint: String, accessToken: Secret) -> HTTPRequest {
        HTTPRequest(
            url: endpoint, fields: HTTPFields([("Accept", "application/json")]),
            authorization: Secret(bytes: Array("Bearer ".utf8) + accessToken.revealedBytes()),
            limits: HTTPLimits(maxBody: HTTPRequest.maxResponse)
        )
    }
}

/// The subject's claims (OpenID Connect Core section 5.3.2). Their `sub` must match that of the ID token.
public struct Userinfo: Sendable, Equatable {
    /// `sub`; nil only if there is no ID token and the provider does not send one.
    public let subject: String?
    public let claims: JSONObject

    /// Reads an unsigned response; for a signed one see ``signedToken(in:)``. If `subject` is given, `sub` must be
    /// equal, byte for byte.
    ///
    /// Throws `.refused` with `invalid_token` for status 401 and `insufficient_scope` for 403 (RFC 6750 section 3.1),
    /// without the provider's message: these errors say nothing about the grant. Otherwise throws `.unavailable` or
    /// `.invalid`.
    public init(
        parsing response: HTTPResponse, subject: String?, dialect: UserinfoDialect = .openID
    ) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .userinfo)
        switch response.status {
        case 200: break
        case 401: throw .refused(OAuthError.ErrorResponse(code: "invalid_token", message: nil, status: 401))
        case 403: throw .refused(OAuthError.ErrorResponse(code: "insufficient_scope", message: nil, status: 403))
        default: throw .invalid(.userinfo, reason: "HTTP \(response.status)")
        }
        guard ResponseReader.mediaType(of: response) != "application/jwt" else {
            throw .invalid(.userinfo, reason: "a signed response, but an unsigned one was expected")
        }
        let object = try ResponseReader.object(in: response, of: .userinfo)
        try self.init(claims: dialect.claims(in: object), subject: subject)
    }

    /// Claims of a response that was checked. Throws `.invalid` if they belong to another subject.
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
