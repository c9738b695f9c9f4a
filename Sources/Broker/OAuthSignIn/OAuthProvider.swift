internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase

struct OAuthProvider: SignInProvider {
    let provider: Provider

    private var account: Account { provider.account }

    func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest {
        let method = try request.readMethod(offering: OAuthMethod.allCases, of: account)
        try request.checkParameters(reserved: AuthorizationRequest.reservedParameters, of: account)
        var request = request
        request.endsElsewhere = method == .browser
        request.startsAtOnce = method == .session
        return request
    }

    func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning {
        let method = try request.readMethod(offering: OAuthMethod.allCases, of: account)
        do throws(BrokerError) {
            switch method {
            case .browser: return .flow(try await authorization(request, in: context))
            case .session: return try await takeOver(request, in: context)
            case .device:
                let device = try await provider.authorizeDevice(request)
                return .flow(device, atMost: .seconds(device.authorization.expiresIn))
            }
        } catch {
            throw await provider.explaining(error)
        }
    }

    /// Prepares a flow: the provider's endpoints, the client secret (so that a missing one is reported before the user
    /// signs in), and a redirect URI with an open listener.
    private func authorization(
        _ request: SignInRequest, in context: SignInContext
    ) async throws(BrokerError) -> AuthorizationFlow {
        let metadata = try await provider.metadata()
        let registration = try await provider.registration(metadata)
        try provider.check(metadata, for: request.scopes ?? account.scopes, by: .browser)
        let guidance = await UserGuidance(for: provider, request, in: context)
        let redirectURI = try await context.openRedirect(account.redirectURI, of: account.name)
        do throws(BrokerError) {
            var flow = try AuthorizationFlow(
                at: provider, request: request, metadata: metadata, redirectURI: redirectURI, guidance: guidance,
                proofKey: try provider.proofs.newKey(metadata))
            flow.pushed = try await provider.push(flow, registration)
            return flow
        } catch {
            await context.closeRedirect(redirectURI, of: account.name)
            throw error
        }
    }

    func redeem(
        _ proof: Proof, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        try await RedemptionFailure.mapping { () throws(BrokerError) in
            do throws(BrokerError) {
                switch (proof, flow.awaited) {
                case (.callback(let arrival), let awaited as AuthorizationFlow):
                    return try await redeem(arrival, of: awaited, flow, in: context)
                case (.poll, let awaited as DeviceFlow): return try await ask(awaited, of: flow, in: context)
                default: throw .conflict(.otherResponseAwaited)
                }
            } catch {
                throw await provider.explaining(error)
            }
        }
    }

    private func redeem(
        _ arrival: Arrival, of awaited: AuthorizationFlow, _ flow: Flow, in context: SignInContext
    ) async throws(BrokerError) -> Redemption {
        let response: AuthorizationResponse
        do throws(AuthorizationResponse.Failure) {
            response = try AuthorizationResponse(of: arrival)
        } catch {
            throw .invalidCallback(Reason(error))
        }
        let code: Secret
        switch response.outcome {
        case .code(let value): code = value
        case .error(let errorResponse): throw BrokerError(errorResponse, for: account.name)
        }
        // Otherwise the exchange would create tokens at the provider that are lost.
        try await context.admitSession(account.name)
        return .session(try await provider.exchange(code, of: awaited), flow.opening)
    }

    func accompany(_ flow: Flow, in context: SignInContext) async {
        if let device = flow.awaited as? DeviceFlow { await poll(flow, device, in: context) }
    }

    func renewPage(of flow: Flow) async throws(BrokerError) -> any AwaitedSignIn {
        guard var awaited = flow.awaited as? AuthorizationFlow else { return flow.awaited }
        // Nil if the provider accepts no pushed requests any more: then the URL has all parameters.
        awaited.pushed = try await provider.push(awaited, try await provider.registration(awaited.metadata))
        return awaited
    }

    func anotherPage(
        of flow: Flow, in context: SignInContext
    ) async throws(BrokerError) -> (any AwaitedSignIn)? {
        guard let awaited = flow.awaited as? AuthorizationFlow else { return nil }
        return try await anotherPage(awaited, flow.request)
    }

    func anotherPage(
        _ awaited: AuthorizationFlow, _ request: SignInRequest
    ) async throws(BrokerError) -> AuthorizationFlow {
        var fresh = try AuthorizationFlow(
            at: provider, request: request, metadata: awaited.metadata, redirectURI: awaited.redirectURI,
            guidance: awaited.guidance, proofKey: awaited.proofKey)
        fresh.pushed = try await provider.push(fresh, try await provider.registration(awaited.metadata))
        return fresh
    }

    func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis {
        await ProviderDiagnosis(provider: provider).diagnosis(isOfService: false, of: subject, session)
    }

    // MARK: Sessions

    func endSessionPage(
        of session: Session?, _ form: EndSessionForm
    ) async throws(BrokerError) -> EndSessionPage? {
        guard let endpoint = try await provider.metadata().endSessionEndpoint else { return nil }
        var hint: Session.Identity?
        var isAtHome = false
        if form.saysWho, let session { isAtHome = try provider.mayReceiveTokens(endpoint, of: session) }
        if isAtHome, form.maySayIDToken { hint = session?.identity }
        let request = EndSessionRequest(
            endpoint: endpoint, clientID: account.clientID, idTokenHint: hint?.token,
            logoutHint: isAtHome ? session?.loginName : nil, redirectURI: account.postLogoutRedirectURI,
            state: RandomToken.base64URL(bits: 128))
        guard request.showsIDToken, let session, let hint else { return (request.url(), nil) }
        let token = AccessToken(
            value: hint.token, type: "id_token", scope: nil, expiry: hint.expiry, lifetime: hint.lifetime)
        return (request.url(), IssuedToken(token, of: session, account))
    }

    func renewal(
        of session: Session, for key: TokenKey, because reason: RefreshReason
    ) async throws(BrokerError) -> Renewal {
        let metadata = try await provider.metadata()
        try session.refuseMove(of: account, to: metadata.tokenEndpoint)
        let registration = try await provider.registration(metadata)
        guard !key.isAssertion else {
            return try assertionRenewal(of: session, for: key, metadata, registration)
                .explaining { [provider] in await provider.explaining($0, isRefresh: true) }
        }
        let proofKey = try provider.proofs.key(of: session)
        let record = ScopeKeepingRecord(of: metadata, in: provider.vault)
        let known = key.scopes == nil ? nil : await record.known
        if key.scopes != nil, known == .narrows || known == nil && reason == .exposed {
            // Only the owner may find out what the provider does: it may cost the session its scopes.
            if reason == .exposed,
                let exchange = ScopeExchange(at: provider, metadata, registration)?.renewal(of: session, for: key)
            {
                return exchange
            }
            let name = account.name
            throw .methodUnsupported(
                .session(known == .narrows ? .losesScopes(name) : .mayLoseScopes(name, exchange: nil)))
        }
        return Renewal(
            // A downscoped request may fail because of its scopes. So only the newest refresh token is sent with it.
            presents: key == .own ? session.refreshTokens : Array(session.refreshTokens.prefix(1)),
            downscopesTo: key.scopes?.joined(separator: " "),
            send: { token, attempt throws(BrokerError) in
                guard let token else { throw .signInRequired(account.name) }
                let restoration = key == .own ? session.restoration(of: token) : nil
                let (response, isRefused) = try await ScopeRestoration.attempt(restoration, key) {
                    key throws(BrokerError) in
                    try await provider.refresh(
                        token, provenBy: proofKey, under: attempt, key: key, metadata: metadata,
                        registration: registration, because: reason)
                }
                return RenewalResponse(refreshToken: response.refreshToken) { held throws(BrokerError) in
                    var renewed = try await provider.validate(response, for: held, key: key, metadata: metadata)
                    let shown = renewed.noteScopes(
                        of: key, after: held, restoration, isRefused: isRefused,
                        known: session.downscopedTo == nil ? known : nil)
                    if let shown { await record.learn(shown) }
                    return renewed
                }
            }, meaning: { $0.meaning(forRefreshOf: key) }
        ).explaining { [provider] in await provider.explaining($0, isRefresh: true) }
    }

    func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool {
        try await provider.revoke(session)
    }
}

extension BrokerError {
    fileprivate func meaning(forRefreshOf key: TokenKey) -> RenewalMeaning {
        if case .provider(.refused("invalid_grant", let message)) = self {
            return .dead(code: nil, message: message)
        }
        switch self {
        case .provider(.otherSession): return .otherSession
        // Without a readable error, the cause may be the requested scope.
        case .provider(.unexplained) where key != .own: return .requestOnly(isUnchanged: false)
        default: break
        }
        guard key == .own || isTransient else { return .requestOnly(isUnchanged: provesUnchanged) }
        return provesUnchanged ? .unchanged : .unknown
    }
}

extension Flow {
    var opening: SessionOpening { SessionOpening(switchesSubject: request.switchesSubject) }
}

extension AuthorizationResponse {
    init(of arrival: Arrival) throws(Failure) {
        if let form = arrival.form {
            try self.init(parsingForm: form)
        } else {
            try self.init(parsing: arrival.url)
        }
    }
}
