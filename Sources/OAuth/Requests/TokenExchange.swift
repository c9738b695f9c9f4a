public import HTTPMessages

/// A token of one security domain for one of another (RFC 8693).
extension TokenRequest {
    /// The grant's name on the wire.
    public static let tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

    /// Trades a token of the given type for an access token, and says that it is to be one: without that word some
    /// servers give what they like, and others refuse.
    public static func tokenExchange(
        subjectToken: Assertion, type: ExchangedTokenType, scope: [String]? = nil, audience: String? = nil,
        resource: String? = nil, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", tokenExchangeGrant)
        request.appendParameter("subject_token", subjectToken.text)
        request.appendParameter("subject_token_type", type.uri)
        request.appendParameter("requested_token_type", ExchangedTokenType.accessToken.uri)
        request.appendTarget(scope: scope, audience: audience, resource: resource)
        registration.authenticate(&request)
        return request
    }
}

/// What kind of token is traded (RFC 8693 section 3): one of its words, or a URI that the server made up.
public struct ExchangedTokenType: Sendable, Equatable {
    public let uri: String

    private static let prefix = "urn:ietf:params:oauth:token-type:"
    /// The short names of those that the standard knows.
    public static let words = ["access_token", "id_token", "jwt", "refresh_token", "saml1", "saml2"]
    public static let accessToken = ExchangedTokenType(uri: prefix + "access_token")
    /// What a workload is given by its platform.
    public static let jwt = ExchangedTokenType(uri: prefix + "jwt")

    private init(uri: String) { self.uri = uri }

    /// A word, or an absolute URI without spaces; nil for anything else.
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

    /// Refuses what a server issued that is no access token (RFC 8693 section 2.2.1): it must not be sent as a bearer
    /// token to anybody. A JSON Web Token is a form that access tokens have. A server that leaves the word out has said
    /// `token_type` all the same, which is checked before.
    public static func check(issued tokens: TokenSet) throws(OAuthError) {
        guard let issued = tokens.issuedTokenType else { return }
        guard [accessToken.uri, jwt.uri].contains(issued) else {
            throw .invalid(.token, reason: "an issued_token_type that is no access token's")
        }
    }
}
