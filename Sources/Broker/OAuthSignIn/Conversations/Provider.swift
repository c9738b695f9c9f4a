internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// The requests to an account's provider. Each method is one exchange with a time limit.
struct Provider: Sendable {
    let account: Account
    let rules: OAuthAccount
    let http: any HTTPClient
    let directory: ProviderDirectory
    let vault: any Vault
    let clock: BrokerClock
    let proofs: Prover

    /// Userinfo only adds claims to display, so a sign-in waits only briefly for it.
    private static let userinfoTimeout: Duration = .seconds(5)
    private static let revocationTimeout: Duration = .seconds(10)

    func metadata() async throws(BrokerError) -> ProviderMetadata {
        switch rules.endpoints {
        case .fixed(let metadata): metadata
        case .issuer(let issuer): try await directory.metadata(of: account, issuer: issuer)
        }
    }

    /// Our registration. If the configuration does not set how the secret is sent, it is by `client_secret_basic`,
    /// which every server must support (RFC 6749 section 2.3.1), unless metadata or an earlier response show otherwise.
    func registration(_ metadata: ProviderMetadata) async throws(BrokerError) -> ClientRegistration {
        if let source = rules.clientKey { return try await signedRegistration(source, metadata) }
        guard let source = rules.clientSecret else {
            return try complete(
                ClientRegistration(clientID: account.clientID, authentication: rules.clientAuthentication ?? .none))
        }
        let secret = try await source.current(for: account.name, directory)
        let offered = metadata.tokenEndpointAuthenticationMethods
        let takesBasic = offered?.contains(ClientAuthentication.clientSecretBasic.rawValue) ?? true
        let takesPost = offered?.contains(ClientAuthentication.clientSecretPost.rawValue) ?? false
        let isShown = offered == nil ? await habits(metadata).takesSecretInForm : false
        let automatic: ClientAuthentication =
            isShown || (!takesBasic && takesPost) ? .clientSecretPost : .clientSecretBasic
        return try complete(
            ClientRegistration(
                clientID: account.clientID, authentication: rules.clientAuthentication ?? automatic, secret: secret))
    }

    private func signedRegistration(
        _ source: Account.KeySource, _ metadata: ProviderMetadata
    ) async throws(BrokerError) -> ClientRegistration {
        let key = try await source.fetch()
        let assertion = try BrokerError.reading(
            from: metadata.issuer ?? account.name.rawValue,
            try ClientAssertion(key: key, metadata: metadata, now: clock.now()))
        return ClientRegistration(clientID: account.clientID, authentication: .privateKeyJWT, assertion: assertion)
    }

    /// Rejects an empty secret before the sign-in. Otherwise the provider would respond with `invalid_client` after it.
    private func complete(_ registration: ClientRegistration) throws(BrokerError) -> ClientRegistration {
        guard registration.isComplete else {
            let method = registration.authentication.rawValue
            throw .misconfigured(
                .stated(
                    "\(account.name) authenticates with \(method), but its client secret or key is missing or empty."))
        }
        return registration
    }

    func refresh(
        _ refreshToken: Secret, provenBy proofKey: DPoPKey?, under attempt: RefreshAttempt, key: TokenKey,
        metadata: ProviderMetadata, registration: ClientRegistration, because reason: RefreshReason
    ) async throws(BrokerError) -> TokenResponse {
        do throws(BrokerError) {
            let response = try await send(as: registration, at: metadata, provenBy: proofKey, under: attempt) {
                registration in
                TokenRequest.refresh(
                    token: refreshToken, scope: key.scopes, audience: key.audience,
                    resource: key.resource ?? rules.mcp?.resource,
                    registration: registration, endpoint: metadata.tokenEndpoint)
            }
            do throws(OAuthError) {
                return try TokenResponse(reading: response)
            } catch {
                let host = HTTPRequest(url: metadata.tokenEndpoint).host
                // If the response was cut off, the cause says more than what is missing in it.
                if let truncation = response.truncation { throw BrokerError(truncation) }
                var meaning = BrokerError(error, host: host)
                if case .invalid = error, (400..<500).contains(response.status) {
                    meaning = BrokerError(unexplained: response, host: host)
                }
                throw meaning.unquoting(refreshToken, registration.secret)
            }
        } catch {
            await doubt(error, isRequested: reason == .requested)
            throw error
        }
    }

    /// Validates a refresh response. Returns the session with its tokens; throws if none of them may be used.
    func validate(
        _ response: TokenResponse, for session: Session, key: TokenKey, metadata: ProviderMetadata
    ) async throws(BrokerError) -> Session {
        let use = proofs.tokenUse(hasKey: session.proofKey != nil)
        let tokens = try BrokerError.reading(from: session.issuer, try response.tokenSet(under: use))
        var renewed = session
        if let idToken = tokens.idToken, let issuer = metadata.issuer {
            var expected = expectations(metadata)
            expected.accessToken = tokens.accessToken
            expected.previous = session.identity.map { identity in
                IDTokenExpectations.Previous(
                    subject: session.subject ?? "", audience: Set(identity.audience),
                    authenticationTime: identity.authenticationTime?.seconds, authorizedParty: identity.authorizedParty,
                    nonce: identity.nonce, issuer: identity.issuer)
            }
            // Without an earlier ID token the subject is from userinfo. A later ID token must have the same subject.
            if expected.previous == nil { expected.subject = session.subject }
            switch try await judge(idToken, metadata, expected) {
            case .success(let verified):
                renewed.adopt(verified, idToken, by: clock)
                renewed.idTokenOddity = nil
            case .failure(let oddity): renewed.idTokenOddity = BrokerError(oddity, host: issuer)
            }
        }
        let asked = key.scopes?.joined(separator: " ") ?? session.scope ?? ""
        if key == .own, let scope = tokens.scope(askedFor: account.scopes) {
            renewed.scope = scope
            renewed.noteScope()
        }
        renewed.tokens[key] = accessToken(tokens, scope: asked)
        // The ID token of the sign-in was not validated, so userinfo was not asked for either.
        if key == .own, session.identity == nil, renewed.identity != nil {
            try await addUserinfo(to: &renewed, metadata, tokens.accessToken)
        }
        if let seconds = tokens.refreshExpiresIn { renewed.end = Deadline(in: .seconds(seconds), by: clock) }
        return renewed
    }

    /// Revokes the session at the provider: its refresh tokens, newest first, then its access tokens. False if the
    /// provider has no revocation endpoint, or does not support such tokens there.
    func revoke(_ session: Session) async throws(BrokerError) -> Bool {
        let metadata = try await metadata()
        guard let endpoint = metadata.revocationEndpoint else { return false }
        guard try WebURL.origin(of: metadata.tokenEndpoint) == session.tokenEndpointOrigin,
            try mayReceiveTokens(endpoint, of: session)
        else {
            throw .conflict(
                .stated("The provider of \(account.name) has moved to another host. Its tokens were not sent there."))
        }
        let registration = try await registration(metadata)
        var tokens: [(Secret, RevocationRequest.Hint)] = session.refreshTokens.map { ($0, .refreshToken) }
        // Each access token of a service is revoked: it has no refresh token whose revocation would end the others.
        let told = session.tokens.filter { $0.key == .own || session.isConfigured }
        tokens += told.values.map { ($0.value, .accessToken) }
        var failure: BrokerError?
        var isRevoked = true
        for (token, hint) in tokens {
            // If revoking one token fails, the others are still revoked.
            do throws(BrokerError) {
                let response = try await send(as: registration, at: metadata, under: nil) { registration in
                    var request = RevocationRequest.build(
                        token: token, hint: hint, registration: registration, endpoint: endpoint)
                    request.limits.timeout = Provider.revocationTimeout
                    return request
                }
                // Without its refresh token a session ends with its access token.
                let outcome = try BrokerError.reading(
                    from: HTTPRequest(url: endpoint).host, try RevocationOutcome(parsing: response))
                if outcome == .unsupported, hint == tokens.first?.1 { isRevoked = false }
            } catch {
                failure = failure ?? error.unquoting(token, registration.secret)
            }
        }
        if let failure { throw failure }
        return isRevoked
    }

    /// True for the token endpoint's or the issuer's host: discovered metadata alone must not send tokens to a new one.
    func mayReceiveTokens(_ endpoint: String, of session: Session) throws(BrokerError) -> Bool {
        guard case .issuer(let issuer) = rules.endpoints else { return true }
        let origin = try WebURL.origin(of: endpoint)
        let home = try WebURL.origin(of: issuer)
        return origin == session.tokenEndpointOrigin || origin == home
    }

    // MARK: Parts

    func accessToken(_ tokens: TokenSet, scope: String) -> AccessToken {
        let lifetime = tokens.lifetime(now: clock.now()).map { Duration.seconds($0) }
        let granted = tokens.scope(askedFor: scope.split(separator: " ").map(String.init))
        return AccessToken(
            value: tokens.accessToken, type: tokens.tokenType, scope: granted ?? (scope.isEmpty ? nil : scope),
            isScopeStated: granted != nil, expiry: lifetime.map { Deadline(in: $0, by: clock) }, lifetime: lifetime)
    }

    func expectations(_ metadata: ProviderMetadata) -> IDTokenExpectations {
        IDTokenExpectations(
            issuer: metadata.idTokenIssuer ?? "", clientID: account.clientID, now: clock.now(),
            allowedAlgorithms: metadata.allowedIDTokenAlgorithms)
    }

    func verify(
        _ token: Secret, _ metadata: ProviderMetadata, _ expected: IDTokenExpectations
    ) async throws(BrokerError) -> IDToken {
        let keys = try await keysForIDToken(token, metadata)
        return try BrokerError.reading(
            from: metadata.issuer ?? "the provider", try IDToken.verify(token, keys: keys, expecting: expected))
    }

    private func judge(
        _ token: Secret, _ metadata: ProviderMetadata, _ expected: IDTokenExpectations
    ) async throws(BrokerError) -> Result<IDToken, OAuthError> {
        let keys = try await keysForIDToken(token, metadata)
        return try BrokerError.reading(
            from: metadata.issuer ?? "the provider",
            try IDToken.judge(refreshed: token, keys: keys, expecting: expected))
    }

    func keysForIDToken(_ token: Secret, _ metadata: ProviderMetadata) async throws(BrokerError) -> JSONWebKeySet {
        guard let address = metadata.jwksURI else {
            throw .misconfigured(
                .stated("The provider's metadata names no jwks_uri, so its ID tokens cannot be checked."))
        }
        return try await keys(at: address, for: token)
    }

    /// The provider's keys. They are fetched again if the token was signed with none of the known ones.
    private func keys(at address: String, for token: Secret) async throws(BrokerError) -> JSONWebKeySet {
        let keys = try await directory.keys(of: account, at: address, isStale: false)
        guard IDToken.isKeyMissing(for: token, in: keys) else { return keys }
        return try await directory.keys(of: account, at: address, isStale: true)
    }

    /// Adds the claims of the userinfo response. Without a usable response nothing is added. A response about another
    /// subject makes the sign-in fail (OpenID Connect Core section 5.3.2).
    func addUserinfo(
        to session: inout Session, _ metadata: ProviderMetadata, _ token: Secret
    ) async throws(BrokerError) {
        guard let endpoint = metadata.userinfoEndpoint else { return }
        let isBound = session.tokens[.own]?.type == DPoPUse.boundType
        var request = UserinfoRequest.build(endpoint: endpoint, accessToken: token, isBound: isBound)
        request.limits.timeout = Provider.userinfoTimeout
        let proofKey = isBound ? try proofs.key(of: session) : nil
        guard let response = try? await proofs.send(provenBy: proofKey, presenting: token, { request }),
            let userinfo = try? await userinfo(in: response, of: session, metadata)
        else { return }
        if let subject = session.subject {
            guard let stated = userinfo.subject else { return }
            guard Session.isSame(stated, subject) else {
                throw .provider(.invalidResponse(.stated("The userinfo of \(request.host) is about another user.")))
            }
        }
        session.subject = userinfo.subject
        session.user = Session.user(from: session.user ?? JSONObject(), userinfo.claims)
    }

    /// Reads the userinfo response, plain or signed. The caller compares the subject.
    private func userinfo(
        in response: HTTPResponse, of session: Session, _ metadata: ProviderMetadata
    ) async throws -> Userinfo {
        guard let token = Userinfo.signedToken(in: response) else {
            return try Userinfo(parsing: response, subject: nil, dialect: metadata.userinfoDialect)
        }
        guard let issuer = session.identity?.issuer ?? metadata.idTokenIssuer else {
            throw BrokerError.misconfigured(.stated("The issuer of the userinfo is not known."))
        }
        return try Userinfo(
            verifying: token, keys: try await keysForIDToken(token, metadata),
            expecting: IDTokenExpectations(
                issuer: issuer, clientID: account.clientID, now: clock.now(),
                allowedAlgorithms: metadata.allowedUserinfoAlgorithms))
    }
}

extension Provider {
    init(_ account: Account, by rules: OAuthAccount, _ tools: ProviderTools) {
        self.init(
            account: account, rules: rules, http: tools.http, directory: tools.memory(), vault: tools.vault,
            clock: tools.clock, proofs: Prover(account, by: rules, tools))
    }
}
