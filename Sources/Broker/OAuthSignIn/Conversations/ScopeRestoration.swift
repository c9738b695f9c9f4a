internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// Restores the scope of a session after a request for a downscoped token. By RFC 6749 section 6 a new refresh token
/// has the scope of the one that was sent; some providers reduce its scope, or that of the one that was sent. A new one
/// is stored beside the previous one and sent at once with the whole scope.
struct ScopeRestoration: Sendable {
    let whole: [String]
    /// The remaining scope if the provider's response does not state it.
    let rest: String
    /// The request states the whole scope. Without a new refresh token a usual refresh shows what the session has.
    let isStated: Bool

    /// Sends a refresh, with the whole scope if it is to be stated. If the provider rejects that, the request is sent
    /// without a scope, and the session continues with the remaining scopes.
    static func attempt<Response>(
        _ restoration: ScopeRestoration?, _ key: TokenKey,
        send: (TokenKey) async throws(BrokerError) -> Response
    ) async throws(BrokerError) -> (response: Response, isRefused: Bool) {
        guard let restoration, restoration.isStated else { return (try await send(key), false) }
        do throws(BrokerError) {
            return (try await send(TokenKey(scopes: restoration.whole)), false)
        } catch {
            guard case .provider(.refused("invalid_scope", _)) = error else { throw error }
            return (try await send(key), true)
        }
    }
}

extension Session {
    /// What a refresh of the own token has to restore; nil after no downscoped token, or with an unknown whole scope.
    func restoration(of token: Secret) -> ScopeRestoration? {
        guard let downscopedTo, token == refreshTokens.first, !scopes.isEmpty else { return nil }
        return ScopeRestoration(
            whole: scopes.map(String.init).sorted(), rest: downscopedTo, isStated: unvalidated != nil)
    }

    /// Notes the session's scopes after a refresh. Returns what it has shown of the provider; nil for nothing.
    mutating func noteScopes(
        of key: TokenKey, after held: Session, _ restoration: ScopeRestoration?, isRefused: Bool, known: ScopeKeeping?
    ) -> ScopeKeeping? {
        let shown = restoration.map { noteRestoration($0, isRefused: isRefused) }
        noteDownscoping(key, of: held, known)
        return shown
    }

    /// After a refresh for a downscoped token: notes the scope that the newest refresh token may be limited to.
    private mutating func noteDownscoping(_ key: TokenKey, of held: Session, _ known: ScopeKeeping?) {
        // A request without scopes leaves the check of an earlier one due.
        let due = key != .own && key.scopes == nil ? downscopedTo : nil
        downscopedTo = nil
        guard key != .own, let token = tokens[key] else { return }
        let granted = Set((token.scope ?? "").split(separator: " "))
        let isWhole = key.scopes == nil && !token.isScopeStated || !scopes.isEmpty && scopes.isSubset(of: granted)
        // Without a new refresh token, a provider that is known to keep the scope need not be asked again.
        let isKept = held.unvalidated == nil && (known == .keeps || key.scopes == nil)
        downscopedTo = isWhole || isKept ? due : token.scope ?? ""
    }

    /// After a refresh for the whole scope: notes which scopes are lost.
    private mutating func noteRestoration(_ restoration: ScopeRestoration, isRefused: Bool) -> ScopeKeeping {
        if isRefused, tokens[.own]?.isScopeStated != true {
            scope = restoration.rest
            tokens[.own]?.scope = restoration.rest
        }
        // Some providers do not list offline_access among the scopes of a token.
        let held = scopes.map(String.init)
        let lost = Set(restoration.whole).subtracting(["offline_access"])
            .filter { !TokenDownscoping.isCovered($0, by: held) }
        guard !lost.isEmpty else { return .keeps }
        lostScopes = lost.union(lostScopes).sorted()
        return .narrows
    }

    /// Removes scopes from the lost ones that a refresh has restored.
    mutating func noteScope() {
        let held = scopes.map(String.init)
        lostScopes.removeAll { TokenDownscoping.isCovered($0, by: held) }
    }
}

/// What a request for a downscoped token does to a session at a provider.
enum ScopeKeeping: String, Sendable {
    /// The session keeps its scopes (RFC 6749 section 6).
    case keeps
    /// The session is left with the scopes of the downscoped token.
    case narrows
}

/// What was learned of a provider. The vault keeps it, for every account there, across sign-outs and restarts.
struct ScopeKeepingRecord: Sendable {
    private static let member = "downscoping"
    private let vault: any Vault
    private let slot: VaultSlot

    init(of metadata: ProviderMetadata, in vault: any Vault) {
        self.vault = vault
        slot = VaultSlot(account: "providers", binding: metadata.tokenEndpoint, kind: .provider)
    }

    var known: ScopeKeeping? {
        get async {
            guard let text = (try? await vault.load(slot))?.text,
                let word = (try? JSON(parsing: text.revealedBytes()))?[ScopeKeepingRecord.member]?.string
            else { return nil }
            return ScopeKeeping(rawValue: word)
        }
    }

    /// A provider that has taken scopes away once is not asked again, so nothing else is learned of it.
    func learn(_ shown: ScopeKeeping) async {
        let known = await known
        guard known != shown, known != .narrows else { return }
        let record: JSON = [ScopeKeepingRecord.member: .string(shown.rawValue)]
        try? await vault.store(Secret(bytes: record.serialized()), in: slot)
    }
}

/// A downscoped token without changing the session: its access token is exchanged for one with fewer scopes (RFC 8693).
struct ScopeExchange: Sendable {
    private let provider: Provider
    private let metadata: ProviderMetadata
    private let registration: ClientRegistration

    /// Nil if the provider offers no exchange.
    init?(at provider: Provider, _ metadata: ProviderMetadata, _ registration: ClientRegistration) {
        guard metadata.grantTypes?.contains(TokenRequest.tokenExchangeGrant) == true else { return nil }
        self.provider = provider
        self.metadata = metadata
        self.registration = registration
    }

    /// Nil if the session is not known to have the scopes: an exchange must not bring more than the session has.
    func renewal(of session: Session, for key: TokenKey) -> Renewal? {
        guard let scopes = key.scopes, session.scopes.isSuperset(of: scopes.map { Substring($0) }),
            let own = session.tokens[.own]
        else { return nil }
        return Renewal(
            presents: [],
            send: { _, _ throws(BrokerError) in
                let tokens = try await send(own.value, for: key, provenBy: try provider.proofs.key(of: session))
                return RenewalResponse(refreshToken: nil) { held in
                    var renewed = held
                    renewed.tokens[key] = provider.accessToken(tokens, scope: scopes.joined(separator: " "))
                    return renewed
                }
            }, meaning: { _ in .requestOnly(isUnchanged: true) })
    }

    private func send(
        _ token: Secret, for key: TokenKey, provenBy proofKey: DPoPKey?
    ) async throws(BrokerError) -> TokenSet {
        let response = try await provider.send(as: registration, at: metadata, provenBy: proofKey, under: nil) {
            registration in
            TokenRequest.tokenExchange(
                subjectToken: token, type: .accessToken, scope: key.scopes, audience: key.audience,
                resource: key.resource ?? provider.rules.mcp?.resource, registration: registration,
                endpoint: metadata.tokenEndpoint)
        }
        do throws(OAuthError) {
            return try provider.proofs.tokens(issuedIn: response, hasKey: proofKey != nil)
        } catch {
            if case .refused(let refusal) = error {
                let name = provider.account.name
                throw .methodUnsupported(.session(.mayLoseScopes(name, exchange: refusal.code)))
            }
            throw BrokerError(error, of: response, host: HTTPRequest(url: metadata.tokenEndpoint).host)
                .unquoting(token, registration.secret)
        }
    }
}
