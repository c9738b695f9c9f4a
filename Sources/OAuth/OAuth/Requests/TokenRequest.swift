public import HTTPMessages
public import Secrets

/// Token requests (RFC 6749 sections 4.1.3 and 6): one function for each grant.
public enum TokenRequest {
    /// The request that redeems a code. `redirectURI` must be the one of the authorization request, byte for byte, and
    /// so must `resource`, if it had one (RFC 8707 section 2.2).
    public static func authorizationCode(
        code: Secret, verifier: Secret, redirectURI: String, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", "authorization_code")
        request.appendParameter("code", code)
        request.appendParameter("redirect_uri", redirectURI)
        request.appendParameter("code_verifier", verifier)
        if let resource { request.appendParameter("resource", resource) }
        registration.authenticate(&request)
        return request
    }

    /// The refresh request. `scope` is only for downscoping: servers reject a refresh that repeats scopes such as
    /// `offline_access`.
    public static func refresh(
        token: Secret, scope: [String]? = nil, audience: String? = nil, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", "refresh_token")
        request.appendParameter("refresh_token", token)
        if let scope, !scope.isEmpty { request.appendParameter("scope", scope.joined(separator: " ")) }
        if let audience { request.appendParameter("audience", audience) }
        if let resource { request.appendParameter("resource", resource) }
        registration.authenticate(&request)
        // The provider may have rotated before the connection failed. The part that arrived may contain the only valid
        // refresh token.
        request.keepsPartialBody = true
        return request
    }
}
