public import HTTPMessages

/// The client credentials grant (RFC 6749 section 4.4): the client acts for itself. No user is involved and no refresh
/// token is needed, because the same request gives the next token.
extension TokenRequest {
    /// The value of `grant_type`.
    public static let clientCredentialsGrant = "client_credentials"

    /// A token request for the client itself. The client must authenticate (RFC 6749 section 4.4), so `registration`
    /// must have a secret or a key. `audience` is a parameter that many servers use in place of `resource` (RFC 8707
    /// section 2).
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
    /// Adds the parameters for what the token is to be used: scope, audience and resource.
    mutating func appendTarget(scope: [String]?, audience: String?, resource: String?) {
        if let scope, !scope.isEmpty { appendParameter("scope", scope.joined(separator: " ")) }
        if let audience { appendParameter("audience", audience) }
        if let resource { appendParameter("resource", resource) }
    }
}
