internal import OAuth

/// Settings of authorization requests and the requirements for their responses.
extension AccountReader {
    /// The check of RFC 9207 compares `iss` with the issuer, so the issuer must be known.
    mutating func readIssuerInResponse(of provider: AccountProvider) -> Bool {
        guard table.boolean("authorization_response_iss") == true else { return false }
        if provider.issuer == nil {
            account.refuse(
                "authorization_response_iss", "needs issuer: without it there is nothing to compare iss with")
        }
        return true
    }

    mutating func readPushedRequests(of provider: AccountProvider) -> PushedRequests {
        let key = "pushed_authorization_requests"
        refuseAtProject(key, provider)
        guard let mode = table.string(key).flatMap(PushedRequests.init) else { return .automatic }
        if mode == .required, let endpoints = provider.endpoints, endpoints.pushedAuthorizationRequestEndpoint == nil {
            account.refuse(key, "\"required\" needs pushed_authorization_request among the endpoints")
        }
        return mode
    }

    /// OpenID Connect Core section 11. The providers of the presets have other rules for offline access.
    mutating func readOfflineConsent(of provider: AccountProvider) -> Bool {
        refuseAtProject("offline_access_consent", provider)
        if let isWanted = table.boolean("offline_access_consent") { return isWanted }
        if case .oidc = provider { return true }
        return false
    }

    private mutating func refuseAtProject(_ key: String, _ provider: AccountProvider) {
        if case .supabase = provider, table.has(key) {
            account.refuse(key, "has no meaning with provider = \"supabase\"")
        }
    }
}
