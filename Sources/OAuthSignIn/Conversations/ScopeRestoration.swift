internal import BrokerCore
internal import Secrets

/// Restores the scope of a session after a request for a downscoped token. RFC 6749 section 6 says that a new refresh
/// token has the scope of the one that was sent. Some providers issue one with the scope of the downscoped token
/// instead. Such a refresh token is stored beside the previous one and sent at once with the whole scope.
struct ScopeRestoration: Sendable {
    /// The session's scopes.
    let whole: [String]
    /// The remaining scope if the provider's response does not state it.
    let rest: String

    /// Sends a refresh, with the whole scope if there is something to restore. If the provider rejects that, the
    /// request is sent without a scope, and the session continues with the remaining scopes.
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
        guard let downscopedTo = unvalidated?.downscopedTo, token == unvalidated?.token, !scopes.isEmpty else {
            return nil
        }
        return ScopeRestoration(whole: scopes.map(String.init).sorted(), rest: downscopedTo)
    }

    /// Notes the session's scopes after a refresh.
    mutating func noteScopes(of key: TokenKey, after held: Session, _ restoration: ScopeRestoration?, isRefused: Bool) {
        if let restoration { noteRestoration(restoration, isRefused: isRefused) }
        noteDownscoping(key, of: held)
    }

    /// After a refresh for a downscoped token: notes the scope that the new refresh token may be limited to.
    private mutating func noteDownscoping(_ key: TokenKey, of held: Session) {
        guard key != .own, let token = tokens[key] else {
            unvalidated?.downscopedTo = nil
            return
        }
        let granted = Set((token.scope ?? "").split(separator: " "))
        let isWhole = key.scopes == nil && !token.isScopeStated || !scopes.isEmpty && scopes.isSubset(of: granted)
        unvalidated?.downscopedTo = isWhole || held.unvalidated == nil ? nil : token.scope ?? ""
    }

    /// After a refresh for the whole scope: notes which scopes are lost.
    private mutating func noteRestoration(_ restoration: ScopeRestoration, isRefused: Bool) {
        if isRefused, tokens[.own]?.isScopeStated != true {
            scope = restoration.rest
            tokens[.own]?.scope = restoration.rest
        }
        // Some providers do not list offline_access among the scopes of a token.
        let lost = Set(restoration.whole).subtracting(scopes.map(String.init)).subtracting(["offline_access"])
        guard !lost.isEmpty else { return }
        lostScopes = lost.union(lostScopes).sorted()
        refusesDownscoping = true
    }

    /// Removes scopes from the lost ones that a refresh has restored.
    mutating func noteScope() {
        let held = scopes
        lostScopes.removeAll { held.contains(Substring($0)) }
    }
}
