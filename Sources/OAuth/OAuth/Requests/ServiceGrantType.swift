public import HTTPMessages
public import Secrets

// A further grant is a case here and a request in a file of its own.

/// How a service gets a token without a user. The raw values are those of the configuration.
public enum ServiceGrantType: String, Sendable, Equatable, CaseIterable {
    /// RFC 6749 section 4.4.
    case clientCredentials = "client_credentials"
    /// RFC 7523 section 2.1.
    case jwtBearer = "jwt_bearer"
    /// RFC 7522 section 2.1.
    case samlBearer = "saml2_bearer"
    /// RFC 8693.
    case tokenExchange = "token_exchange"

    /// False if the client's own credentials suffice. Otherwise a token of another issuer is exchanged.
    public var needsAssertion: Bool { self != .clientCredentials }

    /// Reads a file with the token to exchange. Throws `.misconfigured` if the content cannot be used.
    public func assertion(in content: Secret) throws(OAuthError) -> Assertion {
        self == .samlBearer ? try Assertion(samlIn: content) : try Assertion(parsing: content)
    }

    /// The token request. Nil if the assertion that the grant needs is missing.
    ///
    /// - Parameter subjectType: the type of the assertion, for a token exchange.
    public func request(
        _ assertion: Assertion?, of subjectType: ExchangedTokenType, scope: [String]?, audience: String?,
        resource: String?, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest? {
        switch (self, assertion) {
        case (.clientCredentials, _):
            TokenRequest.clientCredentials(
                scope: scope, audience: audience, resource: resource, registration: registration, endpoint: endpoint)
        case (.jwtBearer, let assertion?):
            TokenRequest.jwtBearer(
                assertion: assertion, scope: scope, audience: audience, resource: resource,
                registration: registration, endpoint: endpoint)
        case (.samlBearer, let assertion?):
            TokenRequest.samlBearer(
                assertion: assertion, scope: scope, audience: audience, resource: resource,
                registration: registration, endpoint: endpoint)
        case (.tokenExchange, let assertion?):
            TokenRequest.tokenExchange(
                subjectToken: assertion.text, type: subjectType, scope: scope, audience: audience, resource: resource,
                registration: registration, endpoint: endpoint)
        case (_, nil): nil
        }
    }
}
