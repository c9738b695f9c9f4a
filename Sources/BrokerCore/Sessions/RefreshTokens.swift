internal import OAuth

/// Refresh tokens that a provider does not give again. Google gives one with a person's first consent, and at later
/// sign-ins, which need no consent, it counts on the client to have kept it.
extension Session {
    /// Takes over the refresh token of the session that this one replaces, if it has none of its own: the same person's,
    /// at the same place, and good for all that this sign-in yielded.
    mutating func keepRefreshToken(of held: Session) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSamePerson(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes),
            // A project's refresh token renews the tokens of its own session alone.
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
    /// How a session of this account can be had that renews itself; nil where nothing is known to help.
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
