public import HTTPMessages

/// A client that acts for itself (RFC 6749 section 4.4): no person is asked, and no refresh token is expected, since the
/// same request gives the next token.
extension TokenRequest {
    /// The grant's name on the wire.
    public static let clientCredentialsGrant = "client_credentials"

    /// Asks for a token of the client's own. Only a client that proves itself may (RFC 6749 section 4.4): `registration`
    /// is to have a secret or a key. `audience` is what many servers know in place of `resource` (RFC 8707 section 2).
    public static func clientCredentials(
        scope: [String]? = nil, audience: String? = nil, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", clientCredentialsGrant)
        request.appendTarget(scope: scope, audience: audience, resource: resource)
        registration.authenticate(&request)
        return request
    }
}

extension HTTPRequest {
    /// What a token is to be for, as far as it is said.
    mutating func appendTarget(scope: [String]?, audience: String?, resource: String?) {
        if let scope, !scope.isEmpty { appendParameter("scope", scope.joined(separator: " ")) }
        if let audience { appendParameter("audience", audience) }
        if let resource { appendParameter("resource", resource) }
    }
}
