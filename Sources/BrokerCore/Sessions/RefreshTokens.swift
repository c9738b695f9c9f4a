internal import OAuth
internal import Secrets

/// The refresh tokens of a session, of which there may be several while a response is not validated.
extension Session {
    /// The refresh tokens worth presenting, the newest first.
    var refreshTokens: [Secret] {
        [unvalidatedRefreshToken, presentedRefreshToken, refreshToken].compactMap { $0 }
    }

    /// Keeps these and no others, the newest first. Of more than three, the two newest and the oldest are kept: the
    /// oldest is the last one whose response was validated.
    mutating func keep(refreshTokens: [Secret]) {
        let newer = refreshTokens.dropLast()
        refreshToken = refreshTokens.last
        unvalidatedRefreshToken = newer.first
        presentedRefreshToken = newer.dropFirst().first
        if newer.isEmpty { downscopedTo = nil }
    }

    /// The session while a response to the refresh token `presented` is not validated: the token that came with it, if it
    /// is another one, stands before those that are held.
    func keeping(_ token: Secret?, presented: Secret) -> Session {
        var session = self
        let known = Array(refreshTokens.drop { $0 != presented })
        let new = token.flatMap { $0 == presented ? nil : $0 }
        session.keep(refreshTokens: [new].compactMap { $0 } + (known.isEmpty ? [presented] : known))
        session.rotates = new != nil
        session.downscopedTo = nil
        return session
    }

    /// The session once the response is validated: `token` alone is left. If it came with a downscoped token, the one that
    /// was presented stays behind it, until a refresh has shown what it is good for.
    func settlingRefreshTokens(_ token: Secret, _ presented: Secret) -> Session {
        var session = self
        session.keep(refreshTokens: downscopedTo == nil || token == presented ? [token] : [token, presented])
        return session
    }

    /// What a new session takes over from the one that it replaces.
    mutating func inherit(from held: Session) {
        refusesDownscoping = held.refusesDownscoping
        keepRefreshToken(of: held)
    }

    /// Takes over the refresh token of the session that this one replaces, if it has none of its own: the same person's,
    /// at the same place, and good for all that this sign-in yielded. Google gives a refresh token with a person's first
    /// consent only, and expects the client to keep it.
    private mutating func keepRefreshToken(of held: Session) {
        guard !isRefreshable, held.isRefreshable, subject != nil, isSamePerson(as: held),
            tokenEndpointOrigin == held.tokenEndpointOrigin, scopes.isSubset(of: held.scopes),
            // A project's refresh token renews the tokens of its own session alone.
            project?.sessionID == held.project?.sessionID
        else { return }
        keep(refreshTokens: held.refreshTokens)
        downscopedTo = held.downscopedTo
        rotates = held.rotates
        end = held.end
    }

    var scopes: Set<Substring> { Set((scope ?? "").split(separator: " ")) }
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

/// What a request for a downscoped token may cost. RFC 6749 section 6 says that a new refresh token has the scope of the
/// one that was presented; some providers give one of the downscoped token's scope instead. Such a refresh token is kept
/// beside its predecessor and presented for the whole scope at once.
struct ScopeRestoration: Sendable {
    /// The session's scopes.
    let whole: [String]
    /// The scope that is left if the provider does not say.
    let rest: String

    /// Sends a refresh, with the whole scope if there is something to restore. If the provider refuses that, the request is
    /// sent without a scope: then the session goes on with what is left.
    static func attempt<Response>(
        _ restoration: ScopeRestoration?, _ key: TokenKey,
        send: (TokenKey) async throws(BrokerError) -> Response
    ) async throws(BrokerError) -> (response: Response, isRefused: Bool) {
        guard let restoration else { return (try await send(key), false) }
        do throws(BrokerError) {
            return (try await send(TokenKey(scopes: restoration.whole)), false)
        } catch {
            guard case .provider(.refused("invalid_scope", _)) = error else { throw error }
            return (try await send(key), true)
        }
    }
}

extension Session {
    /// The scope to state with a refresh token; nil unless it came with a downscoped token and the whole scope is known.
    func restoration(of token: Secret) -> ScopeRestoration? {
        guard let downscopedTo, token == unvalidatedRefreshToken, !scopes.isEmpty else { return nil }
        return ScopeRestoration(whole: scopes.map(String.init).sorted(), rest: downscopedTo)
    }

    /// After a refresh: what is known of the scopes.
    mutating func noteScopes(of key: TokenKey, after held: Session, _ restoration: ScopeRestoration?, isRefused: Bool) {
        if let restoration { noteRestoration(restoration, isRefused: isRefused) }
        noteDownscoping(key, of: held)
    }

    /// After a refresh for a downscoped token: what the refresh token that came with it may be good for.
    private mutating func noteDownscoping(_ key: TokenKey, of held: Session) {
        guard key != .own, let token = tokens[key] else { return downscopedTo = nil }
        let granted = Set((token.scope ?? "").split(separator: " "))
        let isWhole = key.scopes == nil && !token.isScopeStated || !scopes.isEmpty && scopes.isSubset(of: granted)
        downscopedTo = isWhole || held.unvalidatedRefreshToken == nil ? nil : token.scope ?? ""
    }

    /// After a refresh for the whole scope: what is left of it.
    private mutating func noteRestoration(_ restoration: ScopeRestoration, isRefused: Bool) {
        if isRefused, tokens[.own]?.isScopeStated != true {
            scope = restoration.rest
            tokens[.own]?.scope = restoration.rest
        }
        // Some providers do not count it among the scopes of a token.
        let lost = Set(restoration.whole).subtracting(scopes.map(String.init)).subtracting(["offline_access"])
        guard !lost.isEmpty else { return }
        lostScopes = lost.union(lostScopes).sorted()
        refusesDownscoping = true
    }

    /// Lost scopes that a refresh brought back are not lost.
    mutating func noteScope() {
        let held = scopes
        lostScopes.removeAll { held.contains(Substring($0)) }
    }
}

extension BrokerError {
    /// No request is made.
    static func downscopingRefused(_ name: AccountName) -> BrokerError {
        .methodUnsupported(
            "The provider of \(name) takes scopes away from the session when a token with fewer scopes is requested. "
                + "Ringback does not request one again: use a token without a scope.")
    }
}

extension TokenKey {
    /// The scopes that the provider says a token has beyond those that were asked for, sorted; empty if none were named.
    public func excess(of token: AccessToken) -> [String] {
        guard let scopes, token.isScopeStated else { return [] }
        return Set((token.scope ?? "").split(separator: " ").map(String.init)).subtracting(scopes).sorted()
    }
}
