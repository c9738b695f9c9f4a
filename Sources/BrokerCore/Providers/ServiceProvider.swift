internal import HTTPMessages
internal import OAuth
internal import Secrets

/// A service's provider, as the session manager talks to it: each refresh is one request for one token, which needs no
/// refresh token.
struct ServiceProvider: SessionProvider {
    let provider: Provider
    let grant: ServiceGrant

    func renewal(of session: Session, for key: TokenKey) async throws(BrokerError) -> Renewal {
        Renewal(
            presents: [],
            send: { _ throws(BrokerError) in
                let fetched = try await provider.fetch(grant, key)
                return RenewalResponse(refreshToken: nil) { session throws(BrokerError) in
                    var session = session
                    session.tokens[key] = fetched.token
                    session.issuer = fetched.issuer
                    session.tokenEndpointOrigin = fetched.origin
                    if key == .own, let scope = fetched.token.scope { session.scope = scope }
                    return session
                }
            },
            // What one app asks for beyond its limits is no matter of the others.
            meaning: { key != .own && $0.concernsRequestAlone ? .requestOnly(isUnchanged: true) : .unknown })
    }

    func revoke(_ session: Session) async throws(BrokerError) -> Bool { try await provider.revoke(session) }
}

/// A service's conversation with its provider: one request, one token.
extension Provider {
    /// What the provider gave.
    struct ServiceToken: Sendable {
        let token: AccessToken
        let issuer: String
        /// The token endpoint's: where a revocation may go.
        let origin: String
    }

    /// Fetches a token. What the key does not narrow is as configured.
    ///
    /// A refresh token that comes all the same is not kept (RFC 6749 section 4.4.3): the same request gives the next
    /// token, and there is one secret less to lose.
    func fetch(_ grant: ServiceGrant, _ key: TokenKey) async throws(BrokerError) -> ServiceToken {
        let metadata = try await metadata()
        let registration = try await registration(metadata)
        let assertion = try await grant.assertion?.fetch()
        let scopes = key.scopes ?? account.scopes
        let request = try request(grant, assertion, scopes, key, registration, metadata.tokenEndpoint)
        let response = try await account.send(request, over: http)
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try TokenResponse(reading: response).tokenSet()
            try ExchangedTokenType.check(issued: tokens)
        } catch {
            throw BrokerError(error, host: request.host).unquoting(registration.secret, assertion?.text)
                .ofService(account)
        }
        let origin = try FlowRegistry.origin(of: metadata.tokenEndpoint)
        return ServiceToken(
            token: accessToken(tokens, scope: scopes.joined(separator: " ")), issuer: metadata.issuer ?? origin,
            origin: origin)
    }

    private func request(
        _ grant: ServiceGrant, _ assertion: Assertion?, _ scopes: [String], _ key: TokenKey,
        _ registration: ClientRegistration, _ endpoint: String
    ) throws(BrokerError) -> HTTPRequest {
        let (audience, resource) = (key.audience ?? grant.audience, key.resource ?? grant.resource)
        if case .clientCredentials = grant.kind {
            return TokenRequest.clientCredentials(
                scope: scopes, audience: audience, resource: resource, registration: registration, endpoint: endpoint)
        }
        guard let assertion else { throw .misconfigured("\(account.name) has no assertion_file.") }
        if case .tokenExchange(let type) = grant.kind {
            return TokenRequest.tokenExchange(
                subjectToken: assertion, type: type, scope: scopes, audience: audience, resource: resource,
                registration: registration, endpoint: endpoint)
        }
        return TokenRequest.jwtBearer(
            assertion: assertion, scope: scopes, audience: audience, resource: resource, registration: registration,
            endpoint: endpoint)
    }
}

extension BrokerError {
    /// A provider's no to a service: there is no person to ask, so that somebody has to mend the configuration.
    fileprivate func ofService(_ account: Account) -> BrokerError {
        guard case .provider(.refused(let code, let message)) = self else { return self }
        return .serviceRefused(account.name, code: code, message: message)
    }

    /// What a provider refuses in a narrowed request for the sake of what it asks for: it says nothing about the
    /// account (RFC 6749 section 5.2, RFC 8693 section 2.2.2).
    var concernsRequestAlone: Bool {
        guard case .serviceRefused(_, let code, _) = self else { return false }
        return ["invalid_scope", "invalid_target", "invalid_request", "access_denied"].contains(code)
    }
}
