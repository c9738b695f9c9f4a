internal import BrokerCore
internal import OAuth
internal import RingbackBase

extension Provider {
    /// Exchanges a flow's code (RFC 6749 section 4.1.3) and validates the response. The session is not stored yet.
    func exchange(_ code: Secret, of flow: AuthorizationFlow) async throws(BrokerError) -> Session {
        let registration = try await registration(flow.metadata)
        let tokens = try await redeem(code, of: flow, registration)
        var session = try await session(
            of: tokens, boundTo: flow.proofKey, at: flow.metadata, askedFor: flow.scopes,
            evidence: SignInEvidence(
                needsIDToken: flow.nonce != nil, nonce: flow.nonce, code: code, maxAge: flow.authorization.maxAge))
        session.identity?.nonceSource = flow.nonceSource
        return session
    }

    private func redeem(
        _ code: Secret, of flow: AuthorizationFlow, _ registration: ClientRegistration
    ) async throws(BrokerError) -> TokenSet {
        let endpoint = flow.metadata.tokenEndpoint
        let host = HTTPRequest(url: endpoint).host
        return try await CodeExchange.run(
            isSpent: \.provesDeadGrant, doubt: { await doubt($0) },
            { () throws(CodeExchange.Failure) in
                let response: HTTPResponse
                do throws(BrokerError) {
                    response = try await send(
                        as: registration, at: flow.metadata, provenBy: flow.proofKey, under: nil
                    ) { registration in
                        TokenRequest.authorizationCode(
                            code: code, verifier: flow.pkce.verifier, redirectURI: flow.redirectURI,
                            resource: flow.authorization.resource, registration: registration, endpoint: endpoint)
                    }
                } catch {
                    throw CodeExchange.Failure(sending: error, to: host)
                }
                do throws(OAuthError) {
                    return try TokenResponse(reading: response)
                        .tokenSet(under: proofs.tokenUse(hasKey: flow.proofKey != nil))
                } catch {
                    throw CodeExchange.Failure(
                        response: BrokerError(error, ofTokenResponse: response, host: host, at: rules.endpoints)
                            .unquoting(code, flow.pkce.verifier, registration.secret))
                }
            })
    }
}

extension Provider {
    /// Sends a request with the client's authentication. Where neither the configuration nor the metadata name a
    /// method, `client_secret_basic` is tried first. If the provider rejects the client, `client_secret_post` is tried
    /// once (RFC 6749 section 2.3.1). If that works, it is remembered.
    ///
    /// - Parameters:
    ///   - key: the key to which the tokens are bound; nil if they are not.
    ///   - attempt: what a request needs that presents a refresh token; nil for any other request.
    func send(
        as registration: ClientRegistration, at metadata: ProviderMetadata, provenBy key: DPoPKey? = nil,
        under attempt: RefreshAttempt?, _ build: (ClientRegistration) -> HTTPRequest
    ) async throws(BrokerError) -> HTTPResponse {
        let response = try await proofs.send(provenBy: key, under: attempt) { build(registration) }
        guard let inForm = registration.withSecretInForm(by: rules, metadata), OAuthError.rejectsClient(in: response)
        else { return response }
        let second = try await proofs.send(provenBy: key, under: attempt) { build(inForm) }
        guard !OAuthError.rejectsClient(in: second) else { return response }
        await directory.note(of: habitKey(metadata)) { $0.takesSecretInForm = true }
        return second
    }

    /// The registration with the method that worked in earlier requests, without fetching the secret again.
    func adapted(_ registration: ClientRegistration, to metadata: ProviderMetadata) async -> ClientRegistration {
        guard let inForm = registration.withSecretInForm(by: rules, metadata), await habits(metadata).takesSecretInForm
        else { return registration }
        return inForm
    }

    func habits(_ metadata: ProviderMetadata) async -> ProviderHabits { await directory.habits(of: habitKey(metadata)) }

    func habitKey(_ metadata: ProviderMetadata) -> ProviderHabits.Key {
        ProviderHabits.Key(tokenEndpoint: metadata.tokenEndpoint, clientID: account.clientID)
    }

    /// After a failure the endpoint may have moved: the metadata are fetched again before their next use.
    ///
    /// - Parameter isRequested: false for a request that is repeated without a caller.
    func doubt(_ error: BrokerError, isRequested: Bool = true) async {
        guard case .issuer(let issuer) = rules.endpoints else { return }
        switch error {
        case .provider(.unreachable), .provider(.invalidResponse), .provider(.unexplained):
            await directory.doubt(account, issuer: issuer, isRequested: isRequested)
        default: break
        }
    }
}

extension ClientRegistration {
    fileprivate func withSecretInForm(by rules: OAuthAccount, _ metadata: ProviderMetadata) -> ClientRegistration? {
        guard authentication == .clientSecretBasic, rules.clientAuthentication == nil,
            metadata.tokenEndpointAuthenticationMethods == nil
        else { return nil }
        return ClientRegistration(clientID: clientID, authentication: .clientSecretPost, secret: secret)
    }
}

/// What earlier responses have shown about a provider.
struct ProviderHabits: Sendable {
    struct Key: Hashable, Sendable {
        let tokenEndpoint: String
        let clientID: String
    }

    /// It accepts the client's secret only in the request body, though its metadata do not say so.
    var takesSecretInForm = false
    /// Its metadata have an endpoint for pushed requests, but such a request has failed.
    var refusesPushes = false
}

extension Provider {
    /// Pushes the request (RFC 9126) if the provider supports or requires it; nil if the parameters go through the
    /// browser. If optional pushing fails, but not for a rejected client, this request and later ones go through the
    /// browser.
    func push(
        _ flow: AuthorizationFlow, _ registration: ClientRegistration
    ) async throws(BrokerError) -> PushedPage? {
        let (authorization, metadata) = (flow.authorization, flow.metadata)
        let isRequired = requiresPushes(metadata)
        if rules.pushedRequests == .never { return nil }
        guard let endpoint = metadata.pushedAuthorizationRequestEndpoint else {
            // The setting may have changed since the sign-in began.
            try checkPushes(metadata)
            return nil
        }
        if !isRequired, await habits(metadata).refusesPushes { return nil }
        var isClientRefused = false
        do throws(BrokerError) {
            let response = try await send(as: registration, at: metadata, provenBy: flow.proofKey, under: nil) {
                registration in
                PushedAuthorization.request(authorization, registration: registration, endpoint: endpoint)
            }
            isClientRefused = PushedAuthorization.rejectsClient(in: response)
            let host = HTTPRequest(url: endpoint).host
            // Some providers respond to a wrong client id, secret or redirect URI with an empty 403.
            guard response.status != 403 || !response.body.isEmpty else {
                let text =
                    "\(host) rejected the pushed authorization request of \(account.name) without a reason (HTTP 403). "
                    + "Compare client_id, the client's secret and redirect_uri with what is registered there."
                throw .unusableSetting(UnusableSetting(.stated(text), setting: "client_id"))
            }
            do throws(OAuthError) {
                return PushedPage(reference: try PushedAuthorization(parsing: response), since: clock.bootInstant)
            } catch {
                throw BrokerError(error, of: response, host: host).unquoting(registration.secret)
            }
        } catch {
            await doubt(error)
            guard !isRequired, !isClientRefused, error != .cancelled else { throw error }
            if !error.isOutage { await directory.note(of: habitKey(metadata)) { $0.refusesPushes = true } }
            return nil
        }
    }
}

/// A pushed request, which the browser opens by its reference.
struct PushedPage: Sendable {
    let reference: PushedAuthorization
    let since: BootInstant

    var life: PageLife { (since, .seconds(reference.expiresIn)) }
}

extension BrokerError {
    /// The provider was not reached or did not work: nothing is known about what it accepts.
    fileprivate var isOutage: Bool {
        switch self {
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme), .provider(.rateLimited),
            .provider(.unavailable), .provider(.failing):
            true
        case .provider(.refused(let code, _)): DPoPRefusal(rawValue: code) != nil
        default: false
        }
    }
}
