public import HTTPMessages
public import Secrets

/// The token exchange grant (RFC 8693): a token of one security domain is exchanged for one of another.
extension TokenRequest {
    /// The value of `grant_type`.
    public static let tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

    /// Exchanges a token of the given type for an access token. The requested type is sent too, because without it some
    /// servers issue another type and others return an error.
    public static func tokenExchange(
        subjectToken: Secret, type: ExchangedTokenType, scope: [String]? = nil, audience: String? = nil,
        resource: String? = nil, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", tokenExchangeGrant)
        request.appendParameter("subject_token", subjectToken)
        request.appendParameter("subject_token_type", type.uri)
        request.appendParameter("requested_token_type", ExchangedTokenType.accessToken.uri)
        request.appendTarget(scope: scope, audience: audience, resource: resource)
        registration.authenticate(&request)
        return request
    }
}

/// The type of a token (RFC 8693 section 3): a short name, or a URI that the server defines.
public struct ExchangedTokenType: Sendable, Equatable {
    public let uri: String

    private static let prefix = "urn:ietf:params:oauth:token-type:"
    /// The short names of the standard types.
    public static let words = ["access_token", "id_token", "jwt", "refresh_token", "saml1", "saml2"]
    public static let accessToken = ExchangedTokenType(uri: prefix + "access_token")
    /// The usual type of a platform's workload token.
    public static let jwt = ExchangedTokenType(uri: prefix + "jwt")

    private init(uri: String) { self.uri = uri }

    /// Reads a short name, or an absolute URI without spaces; nil for other text.
    public init?(parsing text: String) {
        if ExchangedTokenType.words.contains(text) {
            uri = ExchangedTokenType.prefix + text
        } else {
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex,
                text.index(after: colon) < text.endIndex,
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { return nil }
            uri = text
        }
    }

    /// Throws `.invalid` if the issued token is no access token (RFC 8693 section 2.2.1), which must not be sent as a
    /// bearer token. `jwt` is accepted, because access tokens may have that form. If `issued_token_type` is missing,
    /// the check of `token_type` has to suffice.
    public static func check(issued tokens: TokenSet) throws(OAuthError) {
        guard let issued = tokens.issuedTokenType else { return }
        guard [accessToken.uri, jwt.uri].contains(issued) else {
            throw .invalid(.token, reason: "an issued_token_type other than that of an access token")
        }
    }
}
