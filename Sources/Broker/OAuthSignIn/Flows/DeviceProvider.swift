internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// The requests of a sign-in on another device (RFC 8628): for the codes, then for the tokens.
extension Provider {
    /// Requests the device code and the user code.
    ///
    /// - Throws: `methodUnsupported` for a provider that offers none.
    func authorizeDevice(_ request: SignInRequest) async throws(BrokerError) -> DeviceFlow {
        let metadata = try await metadata()
        guard let endpoint = metadata.deviceAuthorizationEndpoint else {
            throw .methodUnsupported(noDevices, method: "device")
        }
        let scopes = request.scopes ?? account.scopes
        try check(metadata, for: scopes, by: .device)
        let parameters = account.authorizationParameters + request.parameters
        let fetched = try await self.registration(metadata)
        let response = try await send(as: fetched, at: metadata, under: nil) { registration in
            DeviceAuthorization.request(
                scopes: scopes, resource: rules.mcp?.resource, additionalParameters: parameters,
                registration: registration, endpoint: endpoint)
        }
        // The first request may have shown which authentication method the provider accepts.
        let registration = await adapted(fetched, to: metadata)
        do throws(OAuthError) {
            return DeviceFlow(
                metadata: metadata, scopes: scopes, registration: registration, mcp: rules.mcp,
                authorization: try DeviceAuthorization(parsing: response, from: endpoint),
                receivedAt: clock.bootInstant)
        } catch {
            throw BrokerError(error, of: response, host: HTTPRequest(url: endpoint).host)
                .unquoting(registration.secret)
        }
    }

    private var noDevices: Reason {
        let isConfigured = if case .fixed = rules.endpoints { true } else { false }
        return .oauth(.noDeviceEndpoint(account.name, isConfigured: isConfigured))
    }

    /// Asks once whether the user has approved.
    ///
    /// - Throws: an error that ends the polling, such as one by which the user declined. No connection, no response and
    ///   "later" are returned as events.
    func ask(_ flow: DeviceFlow) async throws(BrokerError) -> DeviceTokenResponse {
        var registration = flow.registration
        if registration.authentication == .privateKeyJWT {
            registration = try await self.registration(flow.metadata)
        }
        let code = flow.authorization.deviceCode
        let request = TokenRequest.deviceCode(
            code, resource: rules.mcp?.resource, registration: registration, endpoint: flow.metadata.tokenEndpoint)
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await account.send(request, toProvider: http)
        } catch {
            return .waiting(try Provider.silence(error))
        }
        do throws(OAuthError) {
            return try DeviceTokenResponse(reading: response)
        } catch {
            return .waiting(
                try Provider.silence(
                    BrokerError(error, deviceCodeOf: account.name, host: request.host)
                        .unquoting(code, registration.secret)))
        }
    }

    /// An event for errors without a usable response; other errors are thrown again.
    private static func silence(_ error: BrokerError) throws(BrokerError) -> DevicePace.Event {
        switch error {
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme):
            return .unanswered(retryAfter: nil)
        case .provider(.rateLimited(let seconds)), .provider(.unavailable(_, let seconds)),
            .provider(.failing(_, _, _, let seconds)):
            return .unanswered(retryAfter: seconds.map { .seconds($0) })
        default: throw error
        }
    }

    /// The session after the user's approval. The response belongs to our own request, so no nonce is needed. An ID
    /// token, if there is one, is validated.
    func session(of response: TokenResponse, _ flow: DeviceFlow) async throws(BrokerError) -> Session {
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try response.tokenSet()
        } catch {
            throw BrokerError(error, host: HTTPRequest(url: flow.metadata.tokenEndpoint).host)
                .unquoting(flow.authorization.deviceCode, flow.registration.secret)
        }
        return try await session(of: tokens, at: flow.metadata, askedFor: flow.scopes, evidence: SignInEvidence())
    }
}

extension BrokerError {
    /// RFC 8628 section 3.5 has two error codes of its own that end a flow.
    init(_ error: OAuthError, deviceCodeOf account: AccountName, host: String) {
        guard case .refused(let errorResponse) = error else {
            self.init(error, host: host)
            return
        }
        switch errorResponse.code {
        // The second code is used by Microsoft.
        case "access_denied", "authorization_declined": self = .accessDenied(account)
        case "expired_token":
            self = .flowExpired(.oauth(.deviceCodeExpired(account, host: host)))
        default: self.init(error, host: host)
        }
    }
}
