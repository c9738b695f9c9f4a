internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON

/// An account's provider as the broker talks to it: each method is one conversation, with a bound. Holds nothing.
struct Provider: Sendable {
    let account: Account
    let http: any HTTPClient
    let directory: ProviderDirectory
    let clock: BrokerClock

    /// Userinfo only adds a name to show: a sign-in does not wait long for it.
    private static let userinfoTimeout: Duration = .seconds(5)
    private static let revocationTimeout: Duration = .seconds(10)

    /// The provider's endpoints.
    func metadata() async throws(BrokerError) -> ProviderMetadata {
        switch account.endpoints {
        case .fixed(let metadata): metadata
        case .issuer(let issuer): try await directory.metadata(of: account, issuer: issuer)
        case .project(let account): try metadata(of: account.project)
        case .unsupported(let reason): throw .methodUnsupported(reason)
        }
    }

    /// Our registration, with the secret where there is one. Without a word in the configuration, a secret is sent the
    /// way that every server must support (RFC 6749 section 2.3.1) unless this one says that it does not.
    func registration(_ metadata: ProviderMetadata) async throws(BrokerError) -> ClientRegistration {
        // A project knows no clients.
        if account.project != nil { return ClientRegistration(clientID: account.clientID, authentication: .none) }
        if let source = account.clientKey { return try await signedRegistration(source, metadata) }
        guard let source = account.clientSecret else {
            return try complete(
                ClientRegistration(clientID: account.clientID, authentication: account.clientAuthentication ?? .none))
        }
        let secret = try await source.fetch()
        let offered = metadata.tokenEndpointAuthenticationMethods
        let takesBasic = offered?.contains(ClientAuthentication.clientSecretBasic.rawValue) ?? true
        let takesPost = offered?.contains(ClientAuthentication.clientSecretPost.rawValue) ?? false
        let automatic: ClientAuthentication = !takesBasic && takesPost ? .clientSecretPost : .clientSecretBasic
        return try complete(
            ClientRegistration(
                clientID: account.clientID, authentication: account.clientAuthentication ?? automatic, secret: secret))
    }

    private func signedRegistration(
        _ source: Account.KeySource, _ metadata: ProviderMetadata
    ) async throws(BrokerError) -> ClientRegistration {
        let key = try await source.fetch()
        do throws(OAuthError) {
            let assertion = try ClientAssertion(key: key, metadata: metadata, now: clock.now())
            return ClientRegistration(
                clientID: account.clientID, authentication: .privateKeyJWT, assertion: assertion)
        } catch {
            throw BrokerError(error, host: metadata.issuer ?? account.name.rawValue)
        }
    }

    /// An empty secret is a mistake here, and would be an `invalid_client` from the provider after the sign-in.
    private func complete(_ registration: ClientRegistration) throws(BrokerError) -> ClientRegistration {
        guard registration.isComplete else {
            throw .misconfigured(
                "\(account.name) authenticates with \(registration.authentication.rawValue), but its client secret "
                    + "or key is missing or empty.")
        }
        return registration
    }

    /// Exchanges a flow's code and checks everything that comes back. The result is a session that nobody holds yet.
    func exchange(_ code: Secret, of flow: AuthorizationFlow) async throws(BrokerError) -> Session {
        let registration = try await registration(flow.metadata)
        let request = TokenRequest.authorizationCode(
            code: code, verifier: flow.pkce.verifier, redirectURI: flow.redirectURI, registration: registration,
            endpoint: flow.metadata.tokenEndpoint)
        let response = try await account.send(request, over: http)
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try TokenResponse(reading: response).tokenSet()
        } catch {
            throw BrokerError(error, host: request.host).unquoting(code, flow.pkce.verifier, registration.secret)
        }
        var session = try await session(
            of: tokens, at: flow.metadata, askedFor: flow.scopes,
            evidence: SignInEvidence(
                needsIDToken: flow.nonce != nil, nonce: flow.nonce, code: code, maxAge: flow.authorization.maxAge))
        session.identity?.nonceSource = flow.nonceSource
        return session
    }

    /// Asks for new tokens. Throws only what says that there is no answer to look into.
    func refresh(
        _ refreshToken: Secret, key: TokenKey, metadata: ProviderMetadata, registration: ClientRegistration
    ) async throws(BrokerError) -> TokenResponse {
        let request = TokenRequest.refresh(
            token: refreshToken, scope: key.scopes, audience: key.audience, resource: key.resource,
            registration: registration, endpoint: metadata.tokenEndpoint)
        let response = try await account.send(request, over: http)
        do throws(OAuthError) {
            return try TokenResponse(reading: response)
        } catch {
            // Of an answer that was cut off, why it was says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw BrokerError(error, host: request.host).unquoting(refreshToken, registration.secret)
        }
    }

    /// The second look at a refresh's response: the session with it, or why none of its tokens may be used.
    func validate(
        _ answer: TokenResponse, for session: Session, key: TokenKey, metadata: ProviderMetadata
    ) async throws(BrokerError) -> Session {
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try answer.tokenSet()
        } catch {
            throw BrokerError(error, host: session.issuer)
        }
        var renewed = session
        if let idToken = tokens.idToken, let issuer = metadata.issuer {
            var expected = expectations(metadata)
            expected.accessToken = tokens.accessToken
            expected.previous = session.identity.map { identity in
                IDTokenExpectations.Previous(
                    subject: session.subject ?? "", audience: Set(identity.audience),
                    authenticationTime: identity.authenticationTime, authorizedParty: identity.authorizedParty,
                    nonce: identity.nonce, issuer: identity.issuer)
            }
            let verified = try await verify(idToken, metadata, expected)
            // Without an earlier ID token the subject is userinfo's word: it binds a later ID token all the same.
            if let subject = session.subject, !Session.isSame(subject, verified.subject) {
                throw .provider(.invalidAnswer("The ID token of \(issuer) is about another person than before."))
            }
            renewed.adopt(verified, idToken, by: clock)
        }
        let asked = key.scopes?.joined(separator: " ") ?? session.scope ?? ""
        if key == .own, let scope = tokens.scope(askedFor: account.scopes) { renewed.scope = scope }
        renewed.tokens[key] = accessToken(tokens, scope: asked)
        if let seconds = tokens.refreshExpiresIn { renewed.end = Deadline(in: seconds, by: clock) }
        return renewed
    }

    /// Tells the provider that the session is over: its newest refresh token, then its access token. False if it has no
    /// place to hear it.
    func revoke(_ session: Session) async throws(BrokerError) -> Bool {
        let metadata = try await metadata()
        guard let endpoint = metadata.revocationEndpoint else { return false }
        guard try FlowRegistry.origin(of: metadata.tokenEndpoint) == session.tokenEndpointOrigin,
            try mayReceiveTokens(endpoint, of: session)
        else {
            throw .conflict("The provider of \(account.name) has moved: its tokens were not sent to the new place.")
        }
        let registration = try await registration(metadata)
        var tokens: [(Secret, RevocationRequest.Hint)] = session.refreshTokens.map { ($0, .refreshToken) }
        // Where no refresh token is above them, each access token is told.
        let told = session.tokens.filter { $0.key == .own || session.isOfService }
        tokens += told.values.map { ($0.value, .accessToken) }
        var failure: BrokerError?
        for (token, hint) in tokens {
            var request = RevocationRequest.build(
                token: token, hint: hint, registration: registration, endpoint: endpoint)
            request.limits.timeout = Provider.revocationTimeout
            // A token that the provider does not take back is no reason to keep it from the others.
            do throws(BrokerError) {
                try await revoke(request)
            } catch {
                failure = failure ?? error.unquoting(token, registration.secret)
            }
        }
        if let failure { throw failure }
        return true
    }

    private func revoke(_ request: HTTPRequest) async throws(BrokerError) {
        let response = try await account.send(request, over: http)
        do throws(OAuthError) {
            _ = try RevocationOutcome(parsing: response)
        } catch {
            throw BrokerError(error, host: request.host)
        }
    }

    /// Discovery's word alone may not lead refresh tokens to a new host: only to the token endpoint's or the issuer's.
    func mayReceiveTokens(_ endpoint: String, of session: Session) throws(BrokerError) -> Bool {
        guard case .issuer(let issuer) = account.endpoints else { return true }
        let origin = try FlowRegistry.origin(of: endpoint)
        let home = try FlowRegistry.origin(of: issuer)
        return origin == session.tokenEndpointOrigin || origin == home
    }

    // MARK: Parts

    func accessToken(_ tokens: TokenSet, scope: String) -> AccessToken {
        let granted = tokens.scope(askedFor: scope.split(separator: " ").map(String.init))
        return AccessToken(
            value: tokens.accessToken, type: tokens.tokenType, scope: granted ?? (scope.isEmpty ? nil : scope),
            isScopeStated: granted != nil, expiry: tokens.expiresIn.map { Deadline(in: $0, by: clock) },
            lifetime: tokens.expiresIn)
    }

    func expectations(_ metadata: ProviderMetadata) -> IDTokenExpectations {
        IDTokenExpectations(
            issuer: metadata.idTokenIssuer ?? "", clientID: account.clientID, now: clock.now(),
            allowedAlgorithms: metadata.allowedIDTokenAlgorithms)
    }

    func verify(
        _ token: Secret, _ metadata: ProviderMetadata, _ expected: IDTokenExpectations
    ) async throws(BrokerError) -> IDToken {
        guard let address = metadata.jwksURI else {
            throw .misconfigured("The provider's metadata names no jwks_uri, so its ID tokens cannot be checked.")
        }
        let keys = try await keys(at: address, for: token)
        do throws(OAuthError) {
            return try IDToken.verify(token, keys: keys, expecting: expected)
        } catch {
            throw BrokerError(error, host: metadata.issuer ?? "the provider")
        }
    }

    /// The provider's keys; newer ones than those that are known if the token was signed with none of them.
    private func keys(at address: String, for token: Secret) async throws(BrokerError) -> JSONWebKeySet {
        let keys = try await directory.keys(of: account, at: address, isStale: false)
        guard IDToken.isKeyMissing(for: token, in: keys) else { return keys }
        return try await directory.keys(of: account, at: address, isStale: true)
    }

    /// A userinfo that cannot be had is done without; one that speaks of somebody else is a lie (OpenID Connect Core
    /// section 5.3.2), and so are the tokens that came with it.
    func addUserinfo(
        to session: inout Session, _ metadata: ProviderMetadata, _ token: Secret
    ) async throws(BrokerError) {
        guard let endpoint = metadata.userinfoEndpoint else { return }
        var request = UserinfoRequest.build(endpoint: endpoint, accessToken: token)
        request.limits.timeout = Provider.userinfoTimeout
        guard let response = try? await account.send(request, over: http),
            let userinfo = try? await userinfo(in: response, of: session, metadata)
        else { return }
        if let subject = session.subject {
            guard let stated = userinfo.subject else { return }
            guard Session.isSame(stated, subject) else {
                throw .provider(.invalidAnswer("The userinfo of \(request.host) is about another person."))
            }
        }
        session.subject = userinfo.subject
        session.user = Session.user(from: session.user ?? JSONObject(), userinfo.claims)
    }

    /// What the answer says, whoever it is about: plain, or in a token that the provider's keys must have signed for us.
    private func userinfo(
        in response: HTTPResponse, of session: Session, _ metadata: ProviderMetadata
    ) async throws -> Userinfo {
        guard let token = Userinfo.signedToken(in: response) else {
            return try Userinfo(parsing: response, subject: nil, dialect: metadata.userinfoDialect)
        }
        guard let address = metadata.jwksURI, let issuer = session.identity?.issuer ?? metadata.idTokenIssuer else {
            throw OAuthError.invalid(.userinfo, reason: "a signed answer of a provider without keys or issuer")
        }
        return try Userinfo(
            verifying: token, keys: try await keys(at: address, for: token),
            expecting: UserinfoExpectations(
                issuer: issuer, clientID: account.clientID, subject: nil, now: clock.now(),
                allowedAlgorithms: metadata.allowedUserinfoAlgorithms))
    }
}
