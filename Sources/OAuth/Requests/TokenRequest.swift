public import HTTPMessages
public import Secrets

/// Requests to the token endpoint (RFC 6749 sections 4.1.3 and 6): one function per grant.
public enum TokenRequest {
    /// Redeems a code. `redirectURI` is the one of the authorization request, byte for byte; `resource` too, if it had
    /// one (RFC 8707 section 2.2).
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

    /// Trades a refresh token for new tokens. `scope` only to narrow: servers refuse a refresh that repeats scopes such
    /// as `offline_access`.
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
        // The provider may have rotated before the line broke: what came may hold the only refresh token that lives.
        request.keepsPartialBody = true
        return request
    }
}
