internal import BrokerCore
internal import Secrets

/// What a request for a downscoped token may cost. RFC 6749 section 6 says that a new refresh token has the scope of
/// the one that was presented; some providers give one of the downscoped token's scope instead. Such a refresh token is
/// kept beside its predecessor and presented for the whole scope at once.
struct ScopeRestoration: Sendable {
    /// The session's scopes.
    let whole: [String]
    /// The scope that is left if the provider does not say.
    let rest: String

    /// Sends a refresh, with the whole scope if there is something to restore. If the provider refuses that, the request
    /// is sent without a scope: then the session goes on with what is left.
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
    /// The scope to state with a refresh token; nil unless it came with a downscoped token and the whole scope is
    /// known.
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
