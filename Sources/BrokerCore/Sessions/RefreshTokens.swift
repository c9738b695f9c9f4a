internal import OAuth

/// Refresh tokens that a provider sends only once. Google sends one with the user's first consent. Later sign-ins need
/// no consent and bring none, so the client has to keep the first one.
extension Session {
    /// Takes over the refresh token of the session that this one replaces, if this one has none. Both sessions must
    /// have the same subject and token endpoint, and the old one must cover every scope of the new one.
    mutating func keepRefreshToken(of held: Session) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSamePerson(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes),
            // At Supabase a refresh token renews the tokens of its own session only.
            project?.sessionID == held.project?.sessionID
        else { return }
        refreshToken = held.refreshToken
        unvalidatedRefreshToken = held.unvalidatedRefreshToken
        rotates = held.rotates
        end = held.end
    }

    private var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
}

extension Account {
    /// What the user can do to get a refresh token for this account; nil where nothing is known to help.
    var renewalAdvice: String? {
        let asksForConsent = authorizationParameters.contains { $0 == ("prompt", "consent") }
        switch provider {
        case "google":
            return asksForConsent
                ? nil
                : "Google gives one with a person's first consent only: add authorization_params = "
                    + "{ prompt = \"consent\" } to the account and sign in once more."
        case "oidc", "microsoft":
            guard scopes.contains("offline_access") else {
                return "Most providers give one for the scope offline_access."
            }
            let isConsentAsked = asksForConsent || (asksConsentForOfflineAccess && scopes.contains("openid"))
            return isConsentAsked
                ? nil : "Some providers give one after the user's consent only: set offline_access_consent = true."
        default: return nil
        }
    }
}
